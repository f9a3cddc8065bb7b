//! What packages and all they need come to, as objects for git.

use crate::kind::Kind as _;
use crate::lock::Locks;
use crate::{Hands, cluster};
use api::pkg::Package;
use plan::lock::{Pinning, Rendered};

/// Makes objects of what is installed, of packages that are asked for besides, and of what all of them
/// need. A package that is asked for stands in for one that is installed by its name.
pub async fn render(
    hands: &Hands,
    wished: Vec<Package>,
    pinning: Pinning,
) -> Result<Rendered, cluster::Error> {
    let locks = Locks::new(hands);
    let Some(mut world) = locks.observe(hands, wished).await? else {
        return Ok(Rendered::default());
    };
    for _ in 0..crate::run::ROUNDS_MAX {
        match plan::lock::render(&world, pinning) {
            Ok(rendered) => return Ok(rendered),
            Err(needs) => {
                for need in needs {
                    locks.learn(hands, &mut world, need).await?;
                }
            }
        }
    }
    Err(cluster::Error::Refused("the lock does not come to a decision".to_owned()))
}
