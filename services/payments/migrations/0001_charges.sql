-- One row per key, for good. The row is written before the bank is asked, so a charge that was
-- begun is known, whoever dies.
CREATE TABLE charges (
    key            uuid        PRIMARY KEY,
    amount_minor   bigint      NOT NULL CHECK (amount_minor > 0),
    currency       text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    card           text        NOT NULL,
    state          text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'declined')),
    decline_reason text,
    -- Who drives it: a new one with each claim, so a driver that was overtaken can tell.
    claim          uuid        NOT NULL,
    -- Until when nobody else drives it, by this server's clock.
    lease_until    timestamptz NOT NULL,
    claims         integer     NOT NULL DEFAULT 1 CHECK (claims > 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    decided_at     timestamptz,
    CONSTRAINT a_decision_has_its_time CHECK ((state = 'pending') = (decided_at IS NULL)),
    CONSTRAINT a_decline_has_its_reason CHECK ((state = 'declined') = (decline_reason IS NOT NULL))
);

-- What the worker looks for: pending charges whose lease has expired, the longest forgotten first.
CREATE INDEX charges_pending ON charges (lease_until) WHERE state = 'pending';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on %: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER a_decision_is_final BEFORE UPDATE OR DELETE ON charges
    FOR EACH ROW WHEN (OLD.state <> 'pending')
    EXECUTE FUNCTION refuse_change('a decided charge never changes');

CREATE TRIGGER the_content_is_fixed BEFORE UPDATE OF key, amount_minor, currency, card, created_at ON charges
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what is charged never changes');

CREATE TRIGGER a_charge_is_kept BEFORE DELETE ON charges
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a charge is never forgotten');
