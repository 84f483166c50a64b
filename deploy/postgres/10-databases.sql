-- One server, and a database for each service that keeps something: none can read another's. Run once, by the image, when
-- the volume is empty; the tables are made by the services themselves. Passwords for a demo on one machine.

CREATE ROLE catalog LOGIN PASSWORD 'catalog';
CREATE DATABASE catalog OWNER catalog;
REVOKE CONNECT ON DATABASE catalog FROM PUBLIC;

CREATE ROLE orders LOGIN PASSWORD 'orders';
CREATE DATABASE orders OWNER orders;
REVOKE CONNECT ON DATABASE orders FROM PUBLIC;

CREATE ROLE payments LOGIN PASSWORD 'payments';
CREATE DATABASE payments OWNER payments;
REVOKE CONNECT ON DATABASE payments FROM PUBLIC;
