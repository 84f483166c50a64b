-- The double-entry ledger: what one account gains another one loses. Rows are added and never
-- changed; a balance is a sum.
CREATE TABLE ledger_entries (
    charge_key   uuid        NOT NULL REFERENCES charges (key),
    account      text        NOT NULL CHECK (account IN ('customers', 'shop')),
    amount_minor bigint      NOT NULL CHECK (amount_minor <> 0),
    currency     text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (charge_key, account)
);

CREATE VIEW balances AS
    SELECT account, currency, sum(amount_minor) AS amount_minor FROM ledger_entries GROUP BY account, currency;

CREATE TRIGGER an_entry_is_fixed BEFORE UPDATE OR DELETE ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is only added to');

CREATE TRIGGER the_ledger_is_kept BEFORE TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('the ledger is only added to');

-- Charge and ledger agree, or the transaction that would part them does not commit: the entries of
-- a charge sum to zero, an approved charge has moved its amount to the shop, any other has none.
CREATE FUNCTION check_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this   uuid;
    charge charges;
    moved  record;
BEGIN
    IF TG_TABLE_NAME = 'charges' THEN
        this := NEW.key;
    ELSE
        this := NEW.charge_key;
    END IF;
    SELECT * INTO charge FROM charges WHERE key = this;
    SELECT count(*) AS entries,
           coalesce(sum(amount_minor), 0) AS total,
           coalesce(sum(amount_minor) FILTER (WHERE account = 'shop'), 0) AS taken,
           coalesce(bool_and(currency = charge.currency), true) AS one_currency
      INTO moved FROM ledger_entries WHERE charge_key = this;
    IF moved.total <> 0 OR NOT moved.one_currency THEN
        RAISE EXCEPTION 'the ledger entries of charge % do not sum to zero', this USING ERRCODE = 'check_violation';
    ELSIF charge.state = 'approved' AND moved.taken <> charge.amount_minor THEN
        RAISE EXCEPTION 'the ledger has % of charge %', moved.taken, this USING ERRCODE = 'check_violation';
    ELSIF charge.state <> 'approved' AND moved.entries > 0 THEN
        RAISE EXCEPTION 'charge % is not approved and has ledger entries', this USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER entries_balance AFTER INSERT ON ledger_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_ledger();

CREATE CONSTRAINT TRIGGER an_approval_is_booked AFTER INSERT OR UPDATE OF state ON charges
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state = 'approved') EXECUTE FUNCTION check_ledger();
