//! The decisions that are kept for a while, if the host wants that.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::question::Question;

/// What an API server decided. That it decided nothing is not among it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    Allowed,
    Denied,
}

/// Decisions by question. Bounded in time and in number.
#[derive(Debug)]
pub(super) enum Decisions {
    NotKept,
    Kept(Kept),
}

#[derive(Debug)]
pub(super) struct Kept {
    lifetime: Duration,
    most: NonZeroUsize,
    by_question: HashMap<Arc<Question>, (Instant, Decided)>,
    /// In the order in which they were kept, each with when it was asked; at most `most`. One that was replaced or
    /// forgotten stays here until its turn.
    order: VecDeque<(Instant, Arc<Question>)>,
}

impl Decisions {
    pub(super) const fn none() -> Self {
        Self::NotKept
    }

    pub(super) fn kept(lifetime: Duration, most: NonZeroUsize) -> Self {
        if lifetime.is_zero() {
            return Self::NotKept;
        }
        Self::Kept(Kept {
            lifetime,
            most,
            by_question: HashMap::new(),
            order: VecDeque::new(),
        })
    }

    /// What is known, unless it was asked for before `trigger`: then it is forgotten.
    pub(super) fn find(
        &mut self,
        question: &Question,
        trigger: Option<Instant>,
        now: Instant,
    ) -> Option<Decided> {
        let Self::Kept(kept) = self else {
            return None;
        };
        let (asked, decided) = kept.by_question.get(question)?;
        if kept.is_current(*asked, now) && trigger.is_none_or(|trigger| *asked >= trigger) {
            return Some(*decided);
        }
        kept.by_question.remove(question);
        None
    }

    /// Keeps what was `asked` for then.
    pub(super) fn keep(&mut self, question: Arc<Question>, asked: Instant, decided: Decided, now: Instant) {
        let Self::Kept(kept) = self else {
            return;
        };
        while kept.order.len() >= kept.most.get()
            || kept
                .order
                .front()
                .is_some_and(|(asked, _)| !kept.is_current(*asked, now))
        {
            kept.give_up_oldest();
        }
        kept.order.push_back((asked, Arc::clone(&question)));
        kept.by_question.insert(question, (asked, decided));
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::NotKept => 0,
            Self::Kept(kept) => kept.by_question.len(),
        }
    }
}

impl Kept {
    /// Whether what was `asked` for then still counts. Nothing is added to a clock, so any lifetime will do.
    fn is_current(&self, asked: Instant, now: Instant) -> bool {
        now.saturating_duration_since(asked) < self.lifetime
    }

    fn give_up_oldest(&mut self) {
        if let Some((asked, question)) = self.order.pop_front()
            && self
                .by_question
                .get(&question)
                .is_some_and(|(kept, _)| *kept == asked)
        {
            self.by_question.remove(&question);
        }
    }
}

#[cfg(test)]
mod tests {
    use krm_stream_protocol::{Scope, Subject};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn question(user: usize) -> Arc<Question> {
        let scope = Scope::builder("v1", "pods").namespace("a").build().unwrap();
        let subject = Subject::new(format!("user-{user}")).unwrap();
        Arc::new(Question::new(&subject, &scope))
    }

    fn decisions(most: usize) -> Decisions {
        Decisions::kept(SECOND, NonZeroUsize::new(most).unwrap())
    }

    #[test]
    fn never_more_are_kept_than_the_bound_and_the_oldest_go_first() {
        let now = Instant::now();
        let mut decisions = decisions(3);
        for user in 0..100 {
            decisions.keep(question(user), now, Decided::Allowed, now);
            assert!(decisions.len() <= 3);
        }
        let found = (0..100).filter(|user| decisions.find(&question(*user), None, now).is_some());
        assert_eq!(found.collect::<Vec<_>>(), [97, 98, 99]);
    }

    #[test]
    fn a_question_that_is_decided_again_and_again_takes_one_place_and_outlives_its_old_decisions() {
        let begin = Instant::now();
        let mut decisions = decisions(3);
        for step in 0..50_u32 {
            let now = begin + SECOND / 10 * step;
            decisions.keep(question(0), now, Decided::Allowed, now);
            assert_eq!(decisions.len(), 1);
            assert!(decisions.find(&question(0), None, now).is_some());
        }
        let Decisions::Kept(kept) = decisions else {
            unreachable!("they are kept");
        };
        assert!(kept.order.len() <= 3);
    }

    #[test]
    fn the_longest_of_lifetimes_is_one() {
        let now = Instant::now();
        let mut decisions = Decisions::kept(Duration::MAX, NonZeroUsize::MIN);
        decisions.keep(question(0), now, Decided::Denied, now);
        decisions.keep(question(1), now, Decided::Allowed, now);
        assert_eq!(
            decisions.find(&question(1), None, now + SECOND),
            Some(Decided::Allowed)
        );
        assert_eq!(decisions.len(), 1);
    }

    #[test]
    fn decisions_that_ran_out_are_given_up_when_another_is_kept() {
        let begin = Instant::now();
        let mut decisions = decisions(100);
        for user in 0..50 {
            decisions.keep(question(user), begin, Decided::Allowed, begin);
        }
        decisions.keep(question(50), begin + SECOND, Decided::Allowed, begin + SECOND);
        assert_eq!(decisions.len(), 1);
    }
}
