//! # Room `registry`: packages served over the OCI distribution protocol
//!
//! Under construction.
