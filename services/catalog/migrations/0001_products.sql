-- What the shop sells. Prices are in cents of the euro, the base currency.
CREATE TABLE products (
    id          text   PRIMARY KEY CHECK (id ~ '^[a-z0-9-]{1,64}$'),
    name        text   NOT NULL,
    summary     text   NOT NULL,
    description text   NOT NULL,
    art         text   NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor > 0),
    position    int    NOT NULL UNIQUE
);
