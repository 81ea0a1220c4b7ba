//! A file system of its own: an image file, a loop device, a mount.
//!
//! Owns: all three, and releases them when dropped, mounted or not. Never does: write to the file
//! system.

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A type of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// ext4 with a journal, data ordered.
    Ext4,
    /// XFS.
    Xfs,
}

impl Kind {
    /// Returns its name for `mount`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
        }
    }

    /// Returns the size of the smallest image that its `mkfs` accepts without being forced, rounded
    /// up.
    pub fn bytes_min(self) -> u64 {
        match self {
            Kind::Ext4 => 32 << 20,
            Kind::Xfs => 320 << 20,
        }
    }

    fn format(self) -> (&'static str, &'static [&'static str]) {
        match self {
            // No blocks for root alone: root writes here, and a full file system must be full.
            Kind::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0", "-b", "4096"]),
            Kind::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file system in a file.
#[derive(Debug)]
pub struct Volume {
    kind: Kind,
    image: PathBuf,
    point: PathBuf,
    device: String,
    mounted: bool,
}

/// Returns why volumes cannot be made here, if they cannot.
pub fn missing(kind: Kind) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root: loop devices and mounts".into());
    }
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let listed = known.lines().any(|line| line.split_whitespace().next_back() == Some(kind.name()));
    let loads =
        || Command::new("modprobe").arg(kind.name()).status().is_ok_and(|status| status.success());
    if !listed && !loads() {
        return Some(format!("the kernel has no {kind}"));
    }
    for tool in ["losetup", kind.format().0] {
        if Command::new(tool).arg("--version").output().is_err()
            && Command::new(tool).arg("-V").output().is_err()
        {
            return Some(format!("{tool} is not installed"));
        }
    }
    None
}

fn tool(name: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(name).args(args).output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Volume {
    /// Makes a file system of this number of bytes, with its image and mount point in `dir`. It is
    /// not mounted yet.
    ///
    /// # Errors
    /// The error of the system or of a tool.
    pub fn new(dir: &Path, kind: Kind, bytes: u64) -> Result<Volume, String> {
        let (image, point) = (dir.join("image"), dir.join("mounted"));
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .and_then(|()| std::fs::create_dir_all(&point))
            .map_err(|e| format!("{}: {e}", dir.display()))?;
        let device = tool("losetup", &["--find", "--show", &image.display().to_string()])?;
        let volume = Volume { kind, image, point, device, mounted: false };
        volume.format()?;
        Ok(volume)
    }

    fn format(&self) -> Result<(), String> {
        let (name, args) = self.kind.format();
        let mut args = args.to_vec();
        args.push(&self.device);
        tool(name, &args).map(|_| ())
    }

    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Mounts it, which replays its journal.
    ///
    /// # Errors
    /// The system's error.
    pub fn mount(&mut self) -> Result<(), String> {
        mount(&self.device, &self.point, self.kind.name(), MountFlags::NOATIME, None::<&CStr>)
            .map_err(|errno| format!("mount {}: {errno}", self.device))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts it; waits a moment for the last process that uses it.
    ///
    /// # Errors
    /// The system's error.
    pub fn unmount(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(10);
        while self.mounted {
            match unmount(&self.point, UnmountFlags::empty()) {
                Ok(()) => self.mounted = false,
                Err(rustix::io::Errno::BUSY) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(errno) => return Err(format!("unmount {}: {errno}", self.point.display())),
            }
        }
        Ok(())
    }

    /// Makes a new file system in the same image.
    ///
    /// # Errors
    /// As [`Volume::new`].
    pub fn renew(&mut self) -> Result<(), String> {
        self.unmount()?;
        self.format()
    }

    /// Returns the image, for a failure's files.
    pub fn image(&self) -> &Path {
        &self.image
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.unmount().is_err() {
            let _ = unmount(&self.point, UnmountFlags::DETACH);
        }
        let _ = tool("losetup", &["--detach", &self.device]);
    }
}
