//! Random schedules of changes, losses of history, joins and polls.

use crate::broken::Rule;
use crate::consumer::check;
use crate::frames::{Budget, State, Uid};
use crate::naive::AtCycleEnd;
use crate::random::Random;
use crate::run::{Connection, Run, Trace};

/// Which schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Draw by draw the model's own, so that a seed means the same there.
    Model,
    /// The same with suppressed upserts, a budget for deletions, streams that pause between cycles or begin another one of
    /// their own accord, and streams that read shared bytes and leave them at any time.
    Extended,
}

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// The naive model and the real types, compared.
    Both,
    /// The naive model with one rule broken.
    Broken(Rule),
    /// The naive model as it is.
    Naive,
}

/// What a schedule came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) cycles: u64,
    /// Polls of streams that could not be served.
    pub(crate) slow: u64,
}

struct Schedule {
    r: Random,
    /// Draws that the model does not make.
    extra: Option<Random>,
    run: Run,
    truth: Vec<(Uid, State)>,
    gone: Vec<Uid>,
    n: u64,
    connections: Vec<Connection>,
    slow: u64,
}

/// Runs one schedule to its end.
pub(crate) fn schedule(
    seed: u32,
    variant: Variant,
    subject: Subject,
    trace: &mut Trace,
) -> Result<Outcome, String> {
    let mut r = Random::new(seed);
    let depth = *r.choice(&[1, 3, 8]);
    let mut run = match subject {
        Subject::Both => Run::both(depth),
        Subject::Broken(rule) => Run::model(depth, Some(rule)),
        Subject::Naive => Run::model(depth, None),
    };
    std::mem::swap(&mut run.trace, trace);
    let extra = (variant == Variant::Extended).then(|| Random::new(!seed));
    let mut schedule = Schedule {
        r,
        extra,
        run,
        truth: Vec::new(),
        gone: Vec::new(),
        n: 0,
        connections: Vec::new(),
        slow: 0,
    };
    let outcome = schedule.play();
    std::mem::swap(&mut schedule.run.trace, trace);
    outcome
}

impl Schedule {
    fn play(&mut self) -> Result<Outcome, String> {
        if self.r.unit() < 0.6 {
            self.run.reach_boundary();
        }
        for _ in 0..self.r.below(250) {
            self.step()?;
            self.run.check_feed()?;
        }
        if !self.run.feed.continuous {
            self.run.swap(&self.truth);
        }
        self.run.reach_boundary();
        for mut c in std::mem::take(&mut self.connections) {
            // The model polls 300 times; once there is nothing to send, one more time shows that nothing comes.
            let mut idle = 0;
            for _ in 0..300 {
                if c.stream.is_paused(&self.run.feed) {
                    self.run.reconnect(&mut c, false)?;
                }
                idle += u32::from(c.stream.ended || self.run.is_at_head(&c));
                if idle > 2 {
                    break;
                }
                self.run
                    .poll(&mut c, Budget::objects(3), AtCycleEnd::Begin, false)?;
                self.run.check_connection(&c)?;
            }
            check!(
                c.stream.ended || (c.consumer.is_live() && self.agrees(&c)),
                "the end: {:?}",
                c.consumer.state
            );
            self.connections.push(c);
        }
        let cycles = self.connections.iter().map(|c| c.stream.cycles).sum();
        Ok(Outcome {
            cycles,
            slow: self.slow,
        })
    }

    /// Whether the consumer holds exactly what is there, versions aside where one may have been suppressed.
    fn agrees(&self, c: &Connection) -> bool {
        let mut truth: Vec<_> = self
            .truth
            .iter()
            .map(|(uid, state)| (uid, state.content))
            .collect();
        truth.sort_unstable();
        c.consumer
            .state
            .iter()
            .map(|(uid, state)| (uid, state.content))
            .eq(truth)
    }

    fn step(&mut self) -> Result<(), String> {
        if self.happens(0.2) {
            self.run.encode();
        }
        let x = self.r.unit();
        let continuous = self.run.feed.continuous;
        if x < 0.52 && continuous {
            return self.change();
        }
        if x < 0.52 {
            // History is lost: what happens now is only seen by the new snapshot.
            self.n += 1;
            self.truth.push((Uid::numbered(self.n), State::new(self.n)));
        } else if x < 0.60 && self.connections.len() < 5 {
            let with_bytes = self.happens(0.5);
            let connection = self.run.connect(with_bytes)?;
            self.connections.push(connection);
        } else if x < 0.61 && !self.connections.is_empty() {
            let at = self.r.below(self.connections.len());
            self.run.disconnect(&mut self.connections.remove(at));
        } else if x < 0.63 {
            self.run.lose_continuity();
        } else if x < 0.66 && !continuous {
            let r = &mut self.r;
            self.truth.retain(|_| r.unit() >= 0.2);
            self.run.swap(&self.truth);
            self.gone.clear();
        } else if x < 0.67 {
            // A new snapshot arrives bit by bit.
            self.run.begin_epoch();
            self.truth.clear();
            self.gone.clear();
        } else if x < 0.70 {
            self.run.reach_boundary();
        } else if x < 0.72 && continuous {
            // A namespace is emptied at once.
            for uid in self.sorted() {
                self.run.delete(&uid)?;
                self.gone.push(uid);
            }
            self.truth.clear();
        } else if !self.connections.is_empty() {
            let at = self.r.below(self.connections.len());
            let objects = *self.r.choice(&[0, 1, 2, 5, 100]);
            let mut c = self.connections.swap_remove(at);
            let polled = self.poll(&mut c, objects);
            self.connections.push(c);
            let last = self.connections.len() - 1;
            self.connections.swap(at, last);
            polled?;
        }
        Ok(())
    }

    fn change(&mut self) -> Result<(), String> {
        self.n += 1;
        let x = self.r.unit();
        let there = !self.truth.is_empty();
        if there && x < 0.3 {
            let uid = self.r.choice(&self.sorted()).clone();
            self.truth.retain(|(other, _)| *other != uid);
            self.gone.push(uid.clone());
            self.run.delete(&uid)
        } else if !self.gone.is_empty() && x < 0.42 {
            // It left the selector and came back: same uid.
            let uid = self.gone.remove(self.r.below(self.gone.len()));
            let state = State::new(self.n);
            self.truth.push((uid.clone(), state));
            if self.happens(0.3) {
                self.run.upsert_suppressed(&uid, state)
            } else {
                self.run.upsert(&uid, state)
            }
        } else if there && x < 0.75 {
            let uid = self.r.choice(&self.sorted()).clone();
            let at = self.truth.iter().position(|(other, _)| *other == uid).unwrap();
            let old = self.truth[at].1;
            let mut state = if self.r.unit() < 0.2 {
                old
            } else {
                State::new(self.n)
            };
            let suppressed = self.happens(0.3);
            if suppressed {
                state = State {
                    content: old.content,
                    resource_version: self.n,
                };
            }
            self.truth[at].1 = state;
            if suppressed {
                self.run.upsert_suppressed(&uid, state)
            } else {
                self.run.upsert(&uid, state)
            }
        } else if !self.gone.is_empty() && x < 0.78 {
            // A replayed deletion.
            let uid = self.r.choice(&self.gone).clone();
            self.run.delete(&uid)
        } else {
            let (uid, state) = (Uid::numbered(self.n), State::new(self.n));
            self.truth.push((uid.clone(), state));
            self.run.upsert(&uid, state)
        }
    }

    fn poll(&mut self, c: &mut Connection, objects: usize) -> Result<(), String> {
        let (mut budget, mut at_end) = (Budget::objects(objects), AtCycleEnd::Begin);
        if let Some(extra) = &mut self.extra {
            budget.deletions = *extra.choice(&[0, 1, 2, usize::MAX, usize::MAX]);
            if extra.unit() < 0.3 {
                at_end = AtCycleEnd::Pause;
            }
            let begins = if c.stream.is_paused(&self.run.feed) {
                0.5
            } else {
                0.05
            };
            if extra.unit() < begins {
                let with_bytes = extra.unit() < 0.7;
                self.run.reconnect(c, with_bytes)?;
            }
        }
        let leaves = self.happens(0.3);
        self.run.poll(c, budget, at_end, leaves)?;
        self.run.check_connection(c)?;
        self.slow += u64::from(c.stream.ended);
        if self.run.is_at_head(c) && self.run.feed.continuous {
            check!(
                self.agrees(c),
                "at the head: {:?}, not {:?}",
                c.consumer.state,
                self.truth
            );
        }
        Ok(())
    }

    fn happens(&mut self, share: f64) -> bool {
        self.extra.as_mut().is_some_and(|extra| extra.unit() < share)
    }

    fn sorted(&self) -> Vec<Uid> {
        let mut uids: Vec<Uid> = self.truth.iter().map(|(uid, _)| uid.clone()).collect();
        uids.sort_unstable();
        uids
    }
}
