//! The table of parts: what the shop is made of.
//!
//! A new part is a new line in [`SERVERS`] or [`SERVICES`] and, for a server, the function that starts it.
//! The rest of this program (start, status, commands, shutdown) goes by these tables.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::{BoxFuture, FutureExt as _, try_join_all};
use nix::sys::signal::Signal;
use testbed::{Part, Postgres, Progress, RabbitMq, Ready, Spec, Stop, database, ports, postgres, rabbitmq};
use url::Url;

use crate::home::Held;
use crate::say::Say;

/// A service finishes what it is at within 10 s (its `DRAIN_TIMEOUT`), then tidies up.
const SERVICE_STOP_WITHIN: Duration = Duration::from_secs(13);
/// A service needs less than a second; the rest is for a machine that is busy.
const SERVICE_READY_WITHIN: Duration = Duration::from_secs(20);

/// A server that the services need: not ours, started first.
pub(crate) struct Server {
    /// What the commands call it.
    pub(crate) name: &'static str,
    /// Starts it, or takes the one that was given.
    pub(crate) start: for<'a> fn(&'a Setup<'a>) -> BoxFuture<'a, anyhow::Result<Started>>,
}

/// A service of the shop, run as a process of this program.
pub(crate) struct Service {
    /// What the commands call it, and its database if it has one.
    pub(crate) name: &'static str,
    /// Whether it keeps something in a database of its own.
    pub(crate) database: bool,
    /// Whether it publishes or takes messages.
    pub(crate) broker: bool,
    /// The services that it calls: their addresses are its settings `NAME_URL`.
    pub(crate) calls: &'static [&'static str],
}

/// The servers. They start side by side.
pub(crate) const SERVERS: &[Server] =
    &[Server { name: "postgres", start: start_postgres }, Server { name: "rabbitmq", start: start_rabbitmq }];

/// The services. They start all at once: the order does not matter.
pub(crate) const SERVICES: &[Service] = &[
    Service { name: "catalog", database: true, broker: false, calls: &[] },
    Service { name: "payments", database: true, broker: false, calls: &[] },
    Service { name: "orders", database: true, broker: true, calls: &["catalog", "payments"] },
    Service { name: STOREFRONT, database: false, broker: false, calls: &["catalog", "orders"] },
];

/// The service that people see.
pub(crate) const STOREFRONT: &str = "storefront";

/// What a server's start can use.
pub(crate) struct Setup<'a> {
    /// The folder of the shop.
    pub(crate) held: &'a Held,
    /// Where it tells what takes long.
    pub(crate) say: Say,
    /// A Postgres from outside.
    pub(crate) postgres_url: Option<&'a Url>,
    /// A RabbitMQ from outside.
    pub(crate) amqp_url: Option<&'a Url>,
}

/// A server, and what the services have to know of it.
pub(crate) struct Started {
    /// `None` when it is not ours.
    pub(crate) managed: Option<Managed>,
    /// What it gives to the services.
    pub(crate) gives: Gives,
}

/// What a server gives to the services.
pub(crate) enum Gives {
    /// A server with a database for each service that needs one.
    Databases(Url),
    /// A broker of messages.
    Broker(Url),
}

/// A part of the shop that runs under us.
pub(crate) struct Managed {
    body: Box<dyn Body>,
    /// Where it serves.
    pub(crate) public: SocketAddr,
    /// Where it tells how it is; `None` for servers that are not ours.
    pub(crate) admin: Option<SocketAddr>,
    /// It is still to be started, and nobody waits for that: the shop sells without it.
    pub(crate) boots_later: bool,
}

/// What holds a part, perhaps with more that has to live as long.
trait Body: Send + Sync {
    fn part(&self) -> &Part;
}

impl Body for Part {
    fn part(&self) -> &Part {
        self
    }
}

impl Body for Postgres {
    fn part(&self) -> &Part {
        Postgres::part(self)
    }
}

impl Body for RabbitMq {
    fn part(&self) -> &Part {
        RabbitMq::part(self)
    }
}

impl Managed {
    /// The process that the commands are about.
    pub(crate) fn part(&self) -> &Part {
        self.body.part()
    }
}

/// What the services are told: who is where.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    /// The server of the databases.
    pub(crate) databases: Option<Url>,
    /// The broker.
    pub(crate) broker: Option<Url>,
    /// Each service with its two addresses.
    pub(crate) services: Vec<(&'static str, SocketAddr, SocketAddr)>,
}

impl Wiring {
    /// Finds a place for every service.
    pub(crate) fn new(port: Option<u16>) -> anyhow::Result<Self> {
        let mut services = Vec::new();
        for service in SERVICES {
            let public = if service.name == STOREFRONT { door(port)? } else { ports::free_address()? };
            services.push((service.name, public, ports::free_address()?));
        }
        Ok(Self { services, ..Self::default() })
    }

    /// Notes what a server gives.
    pub(crate) fn take(&mut self, gives: Gives) {
        match gives {
            Gives::Databases(server) => self.databases = Some(server),
            Gives::Broker(broker) => self.broker = Some(broker),
        }
    }

    /// Where a service is.
    pub(crate) fn public(&self, name: &str) -> anyhow::Result<SocketAddr> {
        let found = self.services.iter().find(|(known, ..)| *known == name);
        found.map(|(_, public, _)| *public).with_context(|| format!("no service {name} in the table"))
    }

    /// The address of a service's database.
    pub(crate) fn database(&self, name: &str) -> anyhow::Result<Url> {
        let server = self.databases.as_ref().context("no part in the table gives databases")?;
        database::url_of(server, name)
    }

    /// The services, ready to be started.
    pub(crate) fn services(&self, held: &Held) -> anyhow::Result<Vec<Managed>> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let managed = |(service, place): (&Service, &(&str, SocketAddr, SocketAddr))| {
            let (_, public, admin) = *place;
            let spec = self.spec(service, public, admin, program.clone(), held)?;
            Ok(Managed { body: Box::new(Part::new(spec)), public, admin: Some(admin), boots_later: false })
        };
        SERVICES.iter().zip(&self.services).map(managed).collect()
    }

    fn spec(
        &self,
        service: &Service,
        public: SocketAddr,
        admin: SocketAddr,
        program: PathBuf,
        held: &Held,
    ) -> anyhow::Result<Spec> {
        let mut spec = Spec::new(service.name, program, held.log(service.name))
            .args(["service", service.name])
            .env("LISTEN", public.to_string())
            .env("ADMIN_LISTEN", admin.to_string())
            .ready(Ready::Http { address: admin, path: "/ready".into() });
        if service.database {
            spec = spec.env("DATABASE_URL", self.database(service.name)?.as_str());
        }
        if service.broker {
            let broker = self.broker.as_ref().context("no part in the table gives a broker")?;
            spec = spec.env("AMQP_URL", broker.as_str());
        }
        for called in service.calls {
            let variable = format!("{}_URL", called.to_uppercase());
            spec = spec.env(variable, format!("http://{}", self.public(called)?));
        }
        spec.ready_within = SERVICE_READY_WITHIN;
        spec.stop = Stop { signal: Signal::SIGTERM, within: SERVICE_STOP_WITHIN };
        Ok(spec)
    }
}

/// The address of the shop's pages.
fn door(port: Option<u16>) -> anyhow::Result<SocketAddr> {
    let port = match port {
        None => ports::first_free_from(8080)?,
        Some(0) => ports::free()?,
        Some(wanted) => {
            anyhow::ensure!(ports::is_free(wanted), "port {wanted} on 127.0.0.1 is taken");
            wanted
        }
    };
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn start_postgres<'a>(setup: &'a Setup<'a>) -> BoxFuture<'a, anyhow::Result<Started>> {
    async move {
        let say = setup.say;
        let progress = Progress::to(move |line| say.line(line));
        let wanted = SERVICES.iter().filter(|service| service.database).map(|service| service.name);
        if let Some(server) = setup.postgres_url {
            let psql = postgres::psql(&progress).await?;
            try_join_all(wanted.map(|name| database::create(&psql, server, name))).await?;
            let host = server.host_str().unwrap_or_default();
            say.line(format!("postgres: using the one at {host}, its databases are there"));
            return Ok(Started { managed: None, gives: Gives::Databases(server.clone()) });
        }
        let options = postgres::Options {
            under: Some(setup.held.run()),
            log: Some(setup.held.log("postgres")),
            progress,
        };
        let postgres = Postgres::start(options).await?;
        setup.held.note_elsewhere(postgres.folder())?;
        try_join_all(wanted.map(|name| postgres.create_database(name))).await?;
        let public = postgres.address();
        say.line(format!("postgres is ready on {public}, with its databases"));
        let gives = Gives::Databases(postgres.server().clone());
        Ok(Started {
            managed: Some(Managed { body: Box::new(postgres), public, admin: None, boots_later: false }),
            gives,
        })
    }
    .boxed()
}

fn start_rabbitmq<'a>(setup: &'a Setup<'a>) -> BoxFuture<'a, anyhow::Result<Started>> {
    async move {
        let say = setup.say;
        if let Some(broker) = setup.amqp_url {
            say.line(format!("rabbitmq: using the one at {}", broker.host_str().unwrap_or_default()));
            return Ok(Started { managed: None, gives: Gives::Broker(broker.clone()) });
        }
        let options = rabbitmq::Options {
            under: Some(setup.held.run()),
            log: Some(setup.held.log("rabbitmq")),
            progress: Progress::to(move |line| say.line(line)),
            settings: Vec::new(),
        };
        let rabbitmq = RabbitMq::prepare(options).await?;
        setup.held.note_elsewhere(rabbitmq.folder())?;
        let public = rabbitmq.address();
        let gives = Gives::Broker(rabbitmq.url().clone());
        Ok(Started {
            managed: Some(Managed { body: Box::new(rabbitmq), public, admin: None, boots_later: true }),
            gives,
        })
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_calls_only_services_of_the_table() {
        let names: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
        for service in SERVICES {
            assert!(service.calls.iter().all(|called| names.contains(called)), "{}", service.name);
        }
        assert!(names.contains(&STOREFRONT));
    }

    #[test]
    fn a_taken_port_is_refused_by_number() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        assert!(door(Some(port)).unwrap_err().to_string().contains(&port.to_string()));
        assert_ne!(door(Some(0)).unwrap().port(), 0);
    }
}
