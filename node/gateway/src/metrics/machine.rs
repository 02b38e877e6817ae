//! The machine in `/metrics`: the disk that the data folder lies on, and what this process takes, under the names that
//! programs of every kind have for it.

use std::fmt;

use farthing_node::status::Readiness;
use farthing_os::process;
use farthing_shared::disk::Space;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
    registry::Unit,
};

use super::one;

pub(super) fn encode(node: &Readiness, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "The version of this program";
    let mut info = encoder.encode_descriptor("farthing_build", help, None, MetricType::Info)?;
    info.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
    if let Some(space) = Space::of(&node.data_dir) {
        let help = "Left for this user on the disk of the data folder";
        one(encoder, "farthing_disk_available", help, Some(&Unit::Bytes), space.free_bytes)?;
        let help = "Size of the disk of the data folder";
        one(encoder, "farthing_disk_size", help, Some(&Unit::Bytes), space.total_bytes)?;
    }
    let help = "Start of the node, in seconds since 1970";
    one(encoder, "process_start_time", help, Some(&Unit::Seconds), node.started_secs)?;
    let Some(usage) = process::usage() else { return Ok(()) };
    let help = "Time of processors that the process took";
    let cpu = encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), MetricType::Counter)?;
    ConstCounter::new(usage.cpu.as_secs_f64()).encode(cpu)?;
    let help = "Memory that the process has in use";
    one(encoder, "process_resident_memory", help, Some(&Unit::Bytes), usage.resident_bytes)?;
    let help = "Addresses of memory that the process has taken";
    one(encoder, "process_virtual_memory", help, Some(&Unit::Bytes), usage.virtual_bytes)?;
    one(encoder, "process_open_fds", "Open files and connections", None, usage.open_files)?;
    let help = "Open files and connections that the system allows";
    one(encoder, "process_max_fds", help, None, usage.open_files_max)
}
