-- How many pieces of each product ever came in, and how many are there now: what came in, less what
-- orders hold that were not declined. The CHECK is the last word on overselling.
CREATE TABLE stock (
    product_id text PRIMARY KEY,
    received   int  NOT NULL,
    pieces     int  NOT NULL CHECK (pieces BETWEEN 0 AND received)
);

-- The id is derived from the owner and the idempotency key, so the primary key is what makes one
-- order of two requests with the same key.
CREATE TABLE orders (
    id          uuid        PRIMARY KEY,
    owner       text        NOT NULL,
    fingerprint bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    state       text        NOT NULL CHECK (state IN ('payment_pending', 'payment_deferred', 'paid', 'declined')),
    total_minor bigint      NOT NULL CHECK (total_minor > 0),
    currency    text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    name        text        NOT NULL,
    email       text        NOT NULL,
    placed_at   timestamptz NOT NULL DEFAULT now()
);

-- product_id has no foreign key: each order would lock the stock of its products once more.
CREATE TABLE order_lines (
    order_id         uuid   NOT NULL REFERENCES orders,
    product_id       text   NOT NULL,
    name             text   NOT NULL,
    quantity         int    NOT NULL CHECK (quantity BETWEEN 1 AND 99),
    unit_price_minor bigint NOT NULL CHECK (unit_price_minor > 0),
    PRIMARY KEY (order_id, product_id)
);

-- Every state an order was in. It is in none of them twice.
CREATE TABLE order_history (
    order_id uuid        NOT NULL REFERENCES orders,
    seq      bigint      GENERATED ALWAYS AS IDENTITY,
    state    text        NOT NULL CHECK (state IN ('payment_pending', 'payment_deferred', 'paid', 'declined')),
    at       timestamptz NOT NULL DEFAULT now(),
    reason   text,
    PRIMARY KEY (order_id, seq),
    UNIQUE (order_id, state)
);

-- Charges that are still to be made. A row goes in with its order, and goes away with the outcome;
-- the card's token is kept nowhere else.
CREATE TABLE intents (
    order_id    uuid        PRIMARY KEY REFERENCES orders,
    card        text        NOT NULL,
    due_at      timestamptz NOT NULL,
    lease_until timestamptz,
    -- How often the relay took it up; also the token by which a late worker is told apart.
    attempts    int         NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    traceparent text
);
CREATE INDEX intents_due ON intents (due_at);

-- What others want to know, written in the transaction that made it true.
CREATE TABLE events (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text        NOT NULL CHECK (kind IN ('order.paid')),
    order_id    uuid        NOT NULL REFERENCES orders,
    traceparent text,
    at          timestamptz NOT NULL DEFAULT now(),
    UNIQUE (order_id, kind)
);
