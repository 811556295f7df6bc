//! From a request to its answer: faults, authentication, authorization, and then what the request asks for.

mod body;
mod discovery;
mod indent;
mod list;
mod options;
mod review;
mod watch;
mod write;

use std::sync::Arc;

use http::{HeaderValue, Request, Response, header, request::Parts};
use hyper::body::Incoming;

use crate::{
    access::Decision,
    answer::Answer,
    connection::ConnectionControl,
    faults::{Instead, Plan},
    request::{ReceivedRequest, Verb},
    shared::Shared,
    status::Status,
};

use self::body::{AnswerBody, complete, damaged, streamed};
pub(crate) use self::indent::indent;

/// What all steps of one request need.
pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    pub(crate) control: Arc<ConnectionControl>,
    pub(crate) request: ReceivedRequest,
    pub(crate) plan: Plan,
    pub(crate) user: crate::access::User,
}

/// Answers a request. Never fails: what goes wrong is an answer too.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    control: Arc<ConnectionControl>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let (parts, incoming) = request.into_parts();
    let request = ReceivedRequest::new(&parts);
    shared.record.received(&request);
    let plan = shared.faults.plan(&request);
    if let Some(delay) = plan.delay {
        tokio::time::sleep(delay).await;
    }
    match &plan.instead {
        None => {}
        Some(Instead::Answer(answer)) => {
            return with_common_headers(&shared, complete(answer, plan.one_byte_chunks));
        }
        Some(Instead::Hang) => std::future::pending::<()>().await,
        Some(Instead::Reset) => {
            control.reset();
            std::future::pending::<()>().await;
        }
    }
    let user = match shared.access.authenticate(&parts.headers) {
        Ok(user) => user,
        Err(status) => return with_common_headers(&shared, complete(&status.to_answer(), false)),
    };
    let mut exchange = Exchange {
        shared: Arc::clone(&shared),
        control,
        request,
        plan,
        user,
    };
    let response = match exchange.answer(&parts, incoming).await {
        Ok(Reply::Answer(answer)) => exchange.damage(&indented(&parts, answer)),
        Ok(Reply::Lines(answer)) => exchange.damage(&answer),
        Ok(Reply::Watch(lines)) => streamed(*lines, exchange.plan.one_byte_chunks),
        Err(status) => exchange.damage(&indented(&parts, status.to_answer())),
    };
    with_common_headers(&shared, response)
}

/// What a request gets.
pub(crate) enum Reply {
    Answer(Answer),
    /// Lines, which are not indented for anybody.
    Lines(Answer),
    Watch(Box<crate::watch::WatchLines>),
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Exchange {
    async fn answer(&mut self, parts: &Parts, incoming: Incoming) -> Result<Reply, Status> {
        if self.request.verb() == Verb::NonResource {
            return Ok(discovery::answer(self).into());
        }
        let attributes = self.request.attributes();
        match self.shared.access.decide(&self.user, &attributes) {
            Decision::Allowed => {}
            Decision::Denied | Decision::NoOpinion => return Err(attributes.forbidden(&self.user)),
        }
        if review::is_review(&self.request) {
            return review::answer(self, incoming).await;
        }
        if !discovery::group_is_served(self) {
            return Ok(discovery::no_such_path().into());
        }
        match self.request.verb() {
            Verb::List => list::answer(self),
            Verb::Watch => watch::answer(self),
            Verb::Get => write::get(self),
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                write::answer(self, parts, incoming).await
            }
            Verb::NonResource => Ok(discovery::answer(self).into()),
        }
    }

    fn damage(&self, answer: &Answer) -> Response<AnswerBody> {
        match self.plan.body {
            None => complete(answer, self.plan.one_byte_chunks),
            Some(fault) => damaged(
                answer,
                fault,
                Arc::clone(&self.control),
                self.plan.one_byte_chunks,
            ),
        }
    }
}

/// The API server indents JSON for a person's tools
/// (`k8s.io/apiserver/pkg/endpoints/handlers/negotiation`, `isPrettyPrint`).
fn indented(parts: &Parts, answer: Answer) -> Answer {
    let agent = parts
        .headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let person = ["Mozilla/5.0", "curl", "Wget"]
        .iter()
        .any(|tool| agent.starts_with(tool));
    let json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    if !person || !json {
        return answer;
    }
    answer.indented()
}

fn with_common_headers(shared: &Shared, mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let headers = response.headers_mut();
    if let Ok(audit) = HeaderValue::from_str(&shared.audit_id()) {
        headers.insert("audit-id", audit);
    }
    headers.insert(
        "x-kubernetes-pf-flowschema-uid",
        HeaderValue::from_static("1b3f7b0e-4f5a-4c57-9a0e-5a6a3a7e0b11"),
    );
    headers.insert(
        "x-kubernetes-pf-prioritylevel-uid",
        HeaderValue::from_static("6f2c9d64-8a0b-4d7e-b1f3-2d9c1e5f7a22"),
    );
    response
}

/// A JSON answer with the headers of the API server.
pub(crate) fn json(code: u16, body: impl Into<bytes::Bytes>) -> Answer {
    Answer::json(code, body).header("Cache-Control", "no-cache, private")
}
