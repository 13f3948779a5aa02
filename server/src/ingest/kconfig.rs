//! What the kernel was built with.

use super::sysfs::text;
use flate2::read::GzDecoder;
use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

/// Longer than any.
const MOST: u64 = 4 << 20;

/// The build options of the running kernel, one a line; nothing if it does not tell them.
pub(super) fn read(root: &Path) -> Option<String> {
    let own = || {
        let mut options = String::new();
        let file = File::open(root.join("proc/config.gz")).ok()?;
        GzDecoder::new(file).take(MOST).read_to_string(&mut options).ok()?;
        Some(options)
    };
    let release = text(&root.join("proc/sys/kernel/osrelease"))?;
    own().or_else(|| fs::read_to_string(root.join(format!("boot/config-{release}"))).ok())
}

/// The value of an option such as `CONFIG_HZ`; nothing if it is not set.
pub(super) fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    options.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    const OPTIONS: &str =
        "# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_SCHED_CORE is not set\n";

    #[test]
    fn from_the_kernel_or_from_boot() {
        let root = tempfile::tempdir().unwrap();
        let path = |file: &str| root.path().join(file);
        fs::create_dir_all(path("proc/sys/kernel")).unwrap();
        fs::create_dir_all(path("boot")).unwrap();
        assert_eq!(read(root.path()), None);
        fs::write(path("proc/sys/kernel/osrelease"), "6.1.0-47-amd64\n").unwrap();
        assert_eq!(read(root.path()), None);
        fs::write(path("boot/config-6.1.0-47-amd64"), "CONFIG_HZ=1000\n").unwrap();
        assert_eq!(option(&read(root.path()).unwrap(), "CONFIG_HZ"), Some("1000"));
        let mut packed = GzEncoder::new(File::create(path("proc/config.gz")).unwrap(), Compression::fast());
        packed.write_all(OPTIONS.as_bytes()).unwrap();
        packed.finish().unwrap();
        let options = read(root.path()).unwrap();
        assert_eq!(
            (option(&options, "CONFIG_HZ"), option(&options, "CONFIG_SCHED_CORE")),
            (Some("250"), None)
        );
        fs::write(path("proc/config.gz"), "no gzip").unwrap();
        assert_eq!(option(&read(root.path()).unwrap(), "CONFIG_HZ"), Some("1000"));
    }
}
