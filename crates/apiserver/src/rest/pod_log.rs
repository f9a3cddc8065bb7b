//! `pods/NAME/log`: what a container wrote, from whatever has it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use serde_json::json;

use super::{Answer, Request, store};
use crate::Server;
use crate::http::query::Query;
use crate::http::share::Share;
use crate::http::status::Failure;
use crate::runtime::{LogOutput, LogPieces, LogQuery, LogStart};
use schema::object::field_error::FieldError;
use schema::object::time;

/// What is missing where nothing has logs.
const NO_LOGS: &str =
    "there are no logs: this server runs no containers, pods are only objects here";

/// What is said of options that are at odds with each other.
const WHOLE: &str = "[]";

/// The log of a container.
pub(super) async fn read(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let query = read_query(request)?;
    let entry = server
        .log
        .get(&request.key())
        .ok_or_else(|| Failure::not_found(&request.kind, request.name()))?;
    let pod = store::open(&request.kind, &entry)?;
    let container = workload::containers::choose_container(&pod, &query.container)
        .map_err(Failure::bad_request)?;
    if pod.pointer("/spec/nodeName").is_none_or(|node| *node == json!("")) {
        return Ok(Answer::Empty);
    }
    let Some(logs) = &server.options.logs else {
        let mut failure = Failure::new(501, "NotImplemented", NO_LOGS);
        failure.details = Some(Box::new(json!({})));
        return Err(failure);
    };
    let missing = workload::containers::explain_missing_log(&pod, &container, query.previous);
    if let Some(why) = missing {
        return Err(Failure::bad_request(why));
    }
    let seat = server.log_seats.take(&request.user, None).await?;
    let opened = logs.open_log(&pod, LogQuery { container, ..query }).await;
    let pieces = opened.map_err(|why| {
        Failure::new(500, "InternalError", format!("Internal error occurred: {why}"))
    })?;
    Ok(Answer::Log(Body::from_stream(SeatedLog { pieces, _seat: seat })))
}

/// A log that has its seat for as long as a client reads it.
struct SeatedLog {
    pieces: LogPieces,
    _seat: Option<Share>,
}

impl Stream for SeatedLog {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.as_mut().poll_next(context)
    }
}

/// What is asked, if it makes sense.
fn read_query(request: &Request) -> Result<LogQuery, Failure> {
    let query = &request.query;
    let (tail, bytes) = (query.number("tailLines")?, query.number("limitBytes")?);
    let (seconds, moment) = (query.number("sinceSeconds")?, read_moment(query)?);
    let mut wrong = Vec::new();
    let tail_lines = bound_below("tailLines", tail, 0, &mut wrong);
    let limit_bytes = bound_below("limitBytes", bytes, 1, &mut wrong);
    let start = match (seconds, moment) {
        (Some(_), Some(_)) => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            wrong.push(FieldError::forbidden(WHOLE, why));
            None
        }
        (Some(_), None) => {
            bound_below("sinceSeconds", seconds, 1, &mut wrong).map(LogStart::SecondsAgo)
        }
        (None, moment) => moment.map(LogStart::At),
    };
    let output = match query.get("stream") {
        "" | "All" => LogOutput::All,
        "Stdout" => LogOutput::Stdout,
        "Stderr" => LogOutput::Stderr,
        other => {
            let allowed = ["All", "Stdout", "Stderr"];
            wrong.push(FieldError::not_supported("stream", other, &allowed));
            LogOutput::All
        }
    };
    if output != LogOutput::All && tail_lines.is_some() {
        let why = "`tailLines` and specific `stream` are mutually exclusive for now";
        wrong.push(FieldError::forbidden(WHOLE, why));
    }
    if !wrong.is_empty() {
        return Err(Failure::invalid("PodLogOptions", "", request.name(), &wrong));
    }
    Ok(LogQuery {
        container: query.get("container").to_owned(),
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        start,
        timestamps: query.flag("timestamps"),
        tail_lines,
        limit_bytes,
        output,
    })
}

/// A number that must be at least this.
fn bound_below(
    field: &str,
    number: Option<i64>,
    least: i64,
    wrong: &mut Vec<FieldError>,
) -> Option<u64> {
    if let Some(small) = number.filter(|number| *number < least) {
        let why = if least == 0 { "greater than or equal to 0" } else { "greater than 0" };
        wrong.push(FieldError::invalid(field, &json!(small), &format!("must be {why}")));
    }
    number.map(i64::unsigned_abs)
}

fn read_moment(query: &Query) -> Result<Option<u64>, Failure> {
    match query.get("sinceTime") {
        "" | "null" => Ok(None),
        text => {
            time::check(text, false).map_err(Failure::bad_request)?;
            Ok(time::parse(text).map(|local| local.saturating_add_signed(east_of_utc(text))))
        }
    }
}

/// What to add to a local time for the time at Greenwich, in seconds.
fn east_of_utc(text: &str) -> i64 {
    let Some(at) = text.rfind(['+', '-']).filter(|at| *at > "2006-01-02".len()) else { return 0 };
    let (sign, offset) = text.split_at(at).1.split_at(1);
    let (hours, minutes) = offset.split_once(':').unwrap_or_default();
    let number = |text: &str| text.parse::<i64>().unwrap_or_default().clamp(0, 99);
    let seconds =
        number(hours).saturating_mul(3600).saturating_add(number(minutes).saturating_mul(60));
    if sign == "+" { seconds.saturating_neg() } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_understood_wherever_it_is_told() {
        let read = |text: &str| read_moment(&Query::parse(&format!("sinceTime={text}")));
        let noon = time::parse("2026-01-01T12:00:00Z");
        assert_eq!(read("2026-01-01T12:00:00Z"), Ok(noon));
        assert_eq!(read("2026-01-01T14:30:00%2B02:30"), Ok(noon));
        assert_eq!(read("2026-01-01T04:00:00-08:00"), Ok(noon));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("noon").unwrap_err().code, 400);
    }
}
