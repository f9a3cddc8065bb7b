//! What may happen, and when: one schedule is one thing that happens to one call.

use std::fmt;
use std::str::FromStr;

/// What may happen to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The manager ends before the call is made.
    CrashBefore,
    /// The manager ends after the call was carried out, and before it knows.
    CrashAfter,
    /// The API server answers with this, and does nothing.
    Answer(u16),
    /// The call is carried out, and the answer lost on the way.
    LostReply,
    /// A question is answered from the past: as things were before anything happened. API servers
    /// promise that this does not happen to the questions the manager asks, so it need only come
    /// to the same in the end.
    Past,
    /// A watch tells its news half a minute late.
    Late,
    /// A watch tells nothing any more, and does not end.
    Deaf,
    /// A watch ends when there would be news, which is lost with it.
    Cut,
    /// After this call of a node the machine stops, with all programs, and is started again.
    PowerLoss,
    /// From this call on a node reaches nobody for some minutes; its programs go on.
    Unreachable,
    /// After this call of a node a program ends by itself.
    Exit,
}

/// The ends of a manager.
pub const CRASHES: [Fault; 2] = [Fault::CrashBefore, Fault::CrashAfter];

/// What a call may be answered with instead of what is true, if it is answered.
pub const ANSWERS: [Fault; 6] = [
    Fault::Answer(409),
    Fault::Answer(404),
    Fault::Answer(410),
    Fault::Answer(429),
    Fault::Answer(500),
    Fault::LostReply,
];

/// What a question may be answered with.
pub const READ_FAULTS: [Fault; 7] = [
    Fault::Answer(409),
    Fault::Answer(404),
    Fault::Answer(410),
    Fault::Answer(429),
    Fault::Answer(500),
    Fault::LostReply,
    Fault::Past,
];

/// Everything that may happen to what a watch tells.
pub const WATCH_FAULTS: [Fault; 3] = [Fault::Late, Fault::Deaf, Fault::Cut];

/// What may happen to a call of a node that runs pods.
pub const NODE_FAULTS: [Fault; 11] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::Answer(409),
    Fault::Answer(404),
    Fault::Answer(410),
    Fault::Answer(429),
    Fault::Answer(500),
    Fault::LostReply,
    Fault::PowerLoss,
    Fault::Unreachable,
    Fault::Exit,
];

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The nth since the user did something.
    Call(usize),
    /// The nth watch of the manager's life.
    Watch(usize),
    /// The nth call of the node since the user did something.
    Node(usize),
    /// The nth watch of the node's life.
    News(usize),
}

impl At {
    /// Whether it is a call of the node.
    pub fn is_of_node(self) -> bool {
        matches!(self, Self::Node(_) | Self::News(_))
    }
}

/// What happens to which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Which call.
    pub at: At,
    /// What happens to it.
    pub fault: Fault,
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Call(number) => write!(formatter, "call-{number}-")?,
            At::Watch(number) => write!(formatter, "watch-{number}-")?,
            At::Node(number) => write!(formatter, "node-{number}-")?,
            At::News(number) => write!(formatter, "news-{number}-")?,
        }
        match self.fault {
            Fault::Answer(code) => write!(formatter, "{code}"),
            Fault::CrashBefore => formatter.write_str("crash-before"),
            Fault::CrashAfter => formatter.write_str("crash-after"),
            Fault::LostReply => formatter.write_str("lost-reply"),
            Fault::Past => formatter.write_str("past"),
            Fault::Late => formatter.write_str("late"),
            Fault::Deaf => formatter.write_str("deaf"),
            Fault::Cut => formatter.write_str("cut"),
            Fault::PowerLoss => formatter.write_str("power-loss"),
            Fault::Unreachable => formatter.write_str("unreachable"),
            Fault::Exit => formatter.write_str("exit"),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no schedule; one is call-17-crash-after, say");
        let mut parts = text.splitn(3, '-');
        let (Some(what), Some(number), Some(fault)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let number = number.parse().map_err(|_| wrong())?;
        let at = match what {
            "call" => At::Call(number),
            "watch" => At::Watch(number),
            "node" => At::Node(number),
            "news" => At::News(number),
            _ => return Err(wrong()),
        };
        let mut all = READ_FAULTS.into_iter().chain(WATCH_FAULTS).chain(NODE_FAULTS);
        let said =
            all.find(|one| Self { at, fault: *one }.to_string().ends_with(&format!("-{fault}")));
        Ok(Self { at, fault: said.ok_or_else(wrong)? })
    }
}
