//! Clusters as the shell reaches them: by kubeconfigs, and with the registry that one of them may name.
//!
//! What is asked of them and found there is room `inventory`; [`wait`] looks until it is as somebody wants it,
//! and [`pods`] for what is in the way of programs of packages.

pub(crate) mod kubeconfig;
pub(crate) mod pods;
pub(crate) mod wait;

use crate::args::cluster::{ClusterArguments, NAMESPACE};
use crate::args::registry::RegistryArguments;
use crate::failure::Outcome;
use crate::nearby::nearby;
use crate::settings::Settings;
use kube::Client;
use kubeconfig::OwnRegistry;
use std::ops::Deref;
use store::remote::Transport;

/// A cluster that a user chose, and the way there.
pub(crate) struct Cluster {
    reached: inventory::Cluster,
    /// Where the registry is that its package manager looks into first.
    registry: Option<OwnRegistry>,
    /// Where the package manager runs packages.
    pub(crate) namespace: String,
}

impl Deref for Cluster {
    type Target = inventory::Cluster;

    fn deref(&self) -> &inventory::Cluster {
        &self.reached
    }
}

impl Cluster {
    /// The cluster that arguments and environment name. Nothing is asked yet.
    pub(crate) async fn connect(
        arguments: &ClusterArguments,
        settings: &Settings,
    ) -> Outcome<Self> {
        let way = kubeconfig::for_commands(arguments.into(), settings).await?;
        let cluster = Self::of(way.client, way.place, &arguments.group_suffix);
        let namespace = arguments.namespace.clone();
        Ok(Self { registry: way.registry, namespace, ..cluster })
    }

    /// A cluster that a client reaches.
    pub(crate) fn of(client: Client, place: String, suffix: &str) -> Self {
        let reached = inventory::Cluster::of(client, place, suffix);
        Self { reached, registry: None, namespace: NAMESPACE.to_owned() }
    }

    /// The way to registries as the package manager of this cluster sees them: one that `apron up`
    /// brought up finds what its own registry has there, whatever the name.
    pub(crate) fn transport(
        &self,
        arguments: &RegistryArguments,
        settings: &Settings,
    ) -> Outcome<Transport> {
        let world = crate::registry::transport(arguments, settings)?;
        Ok(match &self.registry {
            Some(own) => nearby(world.clone(), own, world),
            None => world,
        })
    }

    /// Where the registry of the control plane listens, if `apron up` brought it up.
    pub(crate) fn own_registry(&self) -> Option<String> {
        self.registry.as_ref().map(|own| own.address.to_string())
    }
}
