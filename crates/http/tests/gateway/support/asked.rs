//! An authorizer whose every check a test answers.

use std::time::Duration;

use krm_stream_protocol::{Authorizer, BoxFuture, Check, Principal, Scope, StreamError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(crate) struct AskedAuthorizer(mpsc::UnboundedSender<Question>);

/// The test's side.
pub(crate) struct Questions(mpsc::UnboundedReceiver<Question>);

/// A check that the gateway wants.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) user: String,
    pub(crate) trigger: Option<Instant>,
    sent: Option<oneshot::Sender<()>>,
    answer: oneshot::Sender<Result<(), StreamError>>,
}

impl AskedAuthorizer {
    pub(crate) fn new() -> (Self, Questions) {
        let (sender, questions) = mpsc::unbounded_channel();
        (Self(sender), Questions(questions))
    }
}

impl Authorizer for AskedAuthorizer {
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        self.authorize_check(Check::new(principal, scope))
    }

    fn authorize_check<'a>(&'a self, check: Check<'a>) -> BoxFuture<'a, Result<(), StreamError>> {
        let (sent, is_sent) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Question {
            user: check.principal().subject().user_name().to_owned(),
            trigger: check.trigger().map(Instant::from_std),
            sent: Some(sent),
            answer,
        });
        Box::pin(async move {
            if is_sent.await.is_ok() {
                check.sent();
            }
            answered
                .await
                .unwrap_or_else(|_| Err(StreamError::internal("the test gave up")))
        })
    }
}

impl Questions {
    /// The next check. Somebody must poll the stream meanwhile.
    pub(crate) async fn next(&mut self) -> Question {
        tokio::time::timeout(Duration::from_mins(10), self.0.recv())
            .await
            .expect("a check should have been asked for")
            .unwrap()
    }

    pub(crate) fn try_next(&mut self) -> Option<Question> {
        self.0.try_recv().ok()
    }

    /// Allows the next check.
    pub(crate) async fn allow_next(&mut self) {
        self.next().await.answer(Ok(()));
    }
}

impl Question {
    /// Says that it was put to whoever decides.
    pub(crate) fn send(&mut self) {
        if let Some(sent) = self.sent.take() {
            let _ = sent.send(());
        }
    }

    /// Answers, having put it before if that was not said yet.
    pub(crate) fn answer(mut self, answer: Result<(), StreamError>) {
        self.send();
        let _ = self.answer.send(answer);
    }

    pub(crate) fn deny(self) {
        self.answer(Err(StreamError::forbidden("no longer yours")));
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}
