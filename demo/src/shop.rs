//! The running parts: what the commands do to them, and their orderly end.

use std::time::Duration;

use futures_util::future::join_all;
use testbed::{Life, Ready, State, poll};

use crate::control::Act;
use crate::parts::{Managed, STOREFRONT, Wiring};
use crate::say::{Say, command};
use crate::status::{PartStatus, Status};

/// Migrations take some tenths of a second; the rest is for a machine that is busy.
const JOINED_WITHIN: Duration = Duration::from_secs(20);

/// The shop while it runs.
pub(crate) struct Shop {
    /// Ended last.
    servers: Vec<Managed>,
    services: Vec<Managed>,
    wiring: Wiring,
    say: Say,
}

impl Shop {
    /// A shop of these parts. The servers run; the services are still to be started.
    pub(crate) fn new(servers: Vec<Managed>, services: Vec<Managed>, wiring: Wiring, say: Say) -> Self {
        Self { servers, services, wiring, say }
    }

    /// Starts the servers that the shop opens without, beside everything else.
    pub(crate) async fn boot(&self) {
        join_all(self.servers.iter().filter(|server| server.boots_later).map(|server| async move {
            let name = server.part().name();
            self.say.line(match server.part().start().await {
                Ok(()) => format!("{name} is ready on {}", server.public),
                Err(fault) => format!("{name} is not there, and what needs it waits: {fault:#}"),
            });
        }))
        .await;
    }

    /// Starts all services at once, and waits until each is ready.
    pub(crate) async fn open(&self) -> anyhow::Result<()> {
        let starts = self.services.iter().map(|managed| async move {
            managed.part().start().await?;
            self.say.line(format!("{} is ready on {}", managed.part().name(), managed.public));
            anyhow::Ok(())
        });
        // Not the first failure only: people want to see all that is wrong.
        let faults: Vec<String> = join_all(starts)
            .await
            .into_iter()
            .filter_map(|start| Some(format!("{:#}", start.err()?)))
            .collect();
        anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(())
    }

    /// Waits until every service has met its database, and so the shop sells. It opens without that as
    /// well, since services join later; people are told then.
    pub(crate) async fn joined(&self) {
        let waits = self.services.iter().filter_map(|managed| {
            let joined = Ready::Http { address: managed.admin?, path: "/joined".into() };
            Some(async move {
                if let Err(fault) = poll::until("its database", JOINED_WITHIN, || joined.ask()).await {
                    self.say.line(format!("{} is not there yet: {fault:#}", managed.part().name()));
                }
            })
        });
        join_all(waits).await;
    }

    /// Where the pages are.
    pub(crate) fn address(&self) -> String {
        self.wiring.public(STOREFRONT).map(|at| format!("http://{at}")).unwrap_or_default()
    }

    /// The shop at this moment.
    pub(crate) fn status(&self) -> Status {
        let part = |managed: &Managed| PartStatus {
            name: managed.part().name().to_owned(),
            pid: managed.part().pid(),
            state: managed.part().state().to_string(),
            public: Some(managed.public.to_string()),
            admin: managed.admin.map(|at| at.to_string()),
        };
        Status { storefront: self.address(), console: None, parts: self.all().map(part).collect() }
    }

    /// The address of a service's database.
    pub(crate) fn database(&self, name: &str) -> anyhow::Result<String> {
        let known =
            crate::parts::SERVICES.iter().filter(|service| service.database).map(|service| service.name);
        let known: Vec<&str> = known.collect();
        anyhow::ensure!(known.contains(&name), "{name} has no database; there are {}", known.join(", "));
        Ok(self.wiring.database(name)?.to_string())
    }

    /// Does something to a part, and returns what was done in words.
    pub(crate) async fn act(&self, act: Act, name: &str) -> anyhow::Result<String> {
        let Some(managed) = self.all().find(|managed| managed.part().name() == name) else {
            let known: Vec<&str> = self.all().map(|managed| managed.part().name()).collect();
            anyhow::bail!("no part is called {name}; there are {}", known.join(", "));
        };
        let part = managed.part();
        let done = match (act, part.state()) {
            (Act::Pause | Act::Resume, State::Stopped) => {
                anyhow::bail!("{name} is stopped: start it first")
            }
            (Act::Start, State::Paused) => anyhow::bail!("{name} is paused: resume it"),
            (Act::Kill, _) => match part.pid() {
                Some(pid) if part.kill().await? => format!("{name} is killed (process {pid})"),
                _ => format!("{name} is stopped already"),
            },
            (Act::Pause, State::Paused) => format!("{name} is paused already"),
            (Act::Pause, _) => {
                part.pause().await?;
                format!("{name} is paused")
            }
            (Act::Resume, State::Paused) => {
                part.resume()?;
                format!("{name} goes on")
            }
            (Act::Start | Act::Resume, State::Running) => format!("{name} is running already"),
            (Act::Start, State::Stopped) => {
                part.start().await?;
                format!("{name} is running again on {}", managed.public)
            }
        };
        self.say.line(&done);
        Ok(done)
    }

    /// Tells of parts that die by themselves, for as long as it is polled. They stay stopped: whoever looks
    /// shall see it.
    pub(crate) async fn watch(&self) {
        join_all(self.all().map(|managed| async {
            let mut life = managed.part().life();
            loop {
                let now = life.borrow_and_update().clone();
                if let Life::Ended(ended) = now
                    && !ended.asked
                {
                    let (name, log) = (managed.part().name(), managed.part().spec().log.display());
                    self.say.line(format!(
                        "{name} has died by itself ({}); `{} start {name}` brings it back; its log is {log}",
                        ended.how,
                        command()
                    ));
                }
                if life.changed().await.is_err() {
                    return;
                }
            }
        }))
        .await;
    }

    /// Ends all parts in order: the services first, while what they need is still there. A part that does not
    /// end in time is killed.
    pub(crate) async fn close(&self) {
        self.all().for_each(|managed| managed.part().retire());
        self.stop(&self.services).await;
        self.stop(&self.servers).await;
    }

    /// Kills everything, all at once.
    pub(crate) async fn kill_all(&self) {
        self.all().for_each(|managed| managed.part().retire());
        join_all(self.all().map(|managed| async move {
            if let Err(fault) = managed.part().kill().await {
                self.say.line(format!("{} is not gone: {fault:#}", managed.part().name()));
            }
        }))
        .await;
    }

    async fn stop(&self, parts: &[Managed]) {
        join_all(parts.iter().map(|managed| async move {
            match managed.part().stop().await {
                Ok(_) => {}
                Err(fault) => self.say.line(format!("{} did not end well: {fault:#}", managed.part().name())),
            }
        }))
        .await;
    }

    fn all(&self) -> impl Iterator<Item = &Managed> {
        self.servers.iter().chain(&self.services)
    }
}
