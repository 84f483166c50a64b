-- The simulated bank's own books. They stand for a system that is not ours: nothing but the bank
-- reads or writes them, and an audit, which compares them with the ledger.
CREATE SCHEMA bank;

CREATE TABLE bank.transfers (
    key            uuid        PRIMARY KEY,
    amount_minor   bigint      NOT NULL CHECK (amount_minor > 0),
    currency       text        NOT NULL,
    approved       boolean     NOT NULL,
    decline_reason text        NOT NULL,
    -- How often this transfer was asked for. Money moves the first time only.
    asked          integer     NOT NULL DEFAULT 1,
    decided_at     timestamptz NOT NULL DEFAULT now()
);
