# SPDX-License-Identifier: Apache-2.0
#
# The guests' kernel: Debian's own, downloaded as a package, unpacked into a cache and not installed.
import fcntl
import hashlib
import lzma
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import cpio
from host import Failure, Missing, die_with_parent, note, program

LAYOUT = 1  # of a folder in the cache; another layout is another number
PACKAGE = "linux-image-amd64"
DOWNLOAD_S = 600

# Loaded in this order, each after what it depends on. With '?': may be missing from a kernel, or
# be part of it.
MODULES = {
    "BOOT": "virtio_pci? virtio_console 9pnet_virtio 9p overlay virtio_net".split(),
    "RDMA": "crc32_generic? ib_uverbs rdma_cm rdma_ucm rdma_rxe".split(),
    "BRIDGE": "bridge veth".split(),  # several devices in a guest
    "ALONE": ["dummy"],               # a guest without others
}


def output_of(argv, **options):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              preexec_fn=die_with_parent, **options)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{shlex.join(argv)} took more than {late.timeout:g} s") from None
    if done.returncode:
        why = done.stderr.strip().splitlines() or ["no message"]
        raise Failure(f"{shlex.join(argv)} failed: {why[-1]}")
    return done.stdout


def download(folder):
    """Brings the newest kernel's package, which the package PACKAGE depends on."""
    try:
        text = output_of([program("apt-cache", "apt"), "show", "--no-all-versions", PACKAGE])
        found = re.search(r"^Depends:.*?\b(linux-image-\d[^\s,(]*)", text, re.M)
        if not found:
            raise Failure(f"{PACKAGE} names no kernel")
        note(f"downloading {found.group(1)}")
        argv = [program("apt-get", "apt"), "-q", "download", found.group(1)]
        if os.geteuid() == 0:  # apt's own user may not write to the folder
            argv[1:1] = ["-o", "APT::Sandbox::User=root"]
        output_of(argv, cwd=folder, timeout=DOWNLOAD_S)
    except Failure as failure:
        raise Missing(f"{failure} (are the package lists old? apt-get update)") from None
    packages = list(Path(folder).glob("*.deb"))
    if len(packages) != 1:
        raise Failure(f"{shlex.join(argv)} left {len(packages)} packages")
    return packages[0]


def unpacked(image):
    """The ELF kernel in a bzImage. The guest that boots it need not decompress itself, which is
    seconds of emulation. A bzImage that is packed in another way is booted as it is."""
    start = ((image[0x1F1] or 4) + 1) * 512 + int.from_bytes(image[0x248:0x24C], "little")
    packed = image[start:start + int.from_bytes(image[0x24C:0x250], "little")]
    try:
        elf = lzma.LZMADecompressor().decompress(packed)
    except lzma.LZMAError:
        return image
    return elf if elf.startswith(b"\x7fELF") else image


def without_signature(module):
    """Checking a module's signature takes long under emulation."""
    mark = b"~Module signature appended~\n"
    if not module.endswith(mark):
        return module
    bytes_of_it = int.from_bytes(module[-len(mark) - 4:-len(mark)], "big")
    return module[:-len(mark) - 12 - bytes_of_it]


class Modules:
    """The modules of an unpacked package."""

    def __init__(self, root):
        self.files, self.built_in = {}, set()
        for path in root.rglob("*.ko*"):
            self.files[path.name.split(".")[0].replace("-", "_")] = path
        for path in root.rglob("modules.builtin"):
            for line in path.read_text().split():
                self.built_in.add(Path(line).stem.replace("-", "_"))

    def read(self, name):
        data = self.files[name].read_bytes()
        if self.files[name].suffix == ".xz":
            data = lzma.decompress(data)
        return without_signature(data)

    def with_dependencies(self, wanted, found):
        """Adds name: bytes of each to `found`, in an order in which they can be loaded."""
        for item in wanted:
            name = item.rstrip("?").replace("-", "_")
            if name in found or name in self.built_in:
                continue
            if name not in self.files:
                if item.endswith("?"):
                    continue
                raise Failure(f"the kernel package has no module {name}")
            data = self.read(name)
            needs = re.search(rb"\0depends=([^\0]*)\0", data)
            self.with_dependencies(filter(None, needs.group(1).decode().split(",")), found)
            found[name] = data


def build(package, folder):
    """kernel, modules.cpio, and a line for each group of modules in modules.list."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as temporary:
        root, new = Path(temporary, "root"), Path(temporary, "new")
        output_of([program("dpkg-deb", "dpkg"), "-x", str(package), str(root)])
        images = list(root.glob("boot/vmlinuz-*"))
        if len(images) != 1:
            raise Failure(f"{package} holds no kernel")
        new.mkdir()
        (new / "kernel").write_bytes(unpacked(images[0].read_bytes()))
        modules, found, lines = Modules(root), {}, []
        for group, wanted in MODULES.items():
            before = len(found)
            modules.with_dependencies(wanted, found)
            lines.append(" ".join([group, *list(found)[before:]]))
        entries = [cpio.folder("modules")]
        entries += [cpio.file(f"modules/{name}", data) for name, data in found.items()]
        (new / "modules.cpio").write_bytes(cpio.archive(entries))
        (new / "modules.list").write_text("\n".join(lines) + "\n")
        new.rename(folder)


def cache_folder():
    given = os.environ.get("CARILLON_VM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(given) if given else Path(base, "carillon-vm")


def prepared():
    """The folder with the kernel and its modules. Made if missing."""
    cache, given = cache_folder(), os.environ.get("CARILLON_VM_DEB")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tag = hashlib.sha256(Path(given).read_bytes()).hexdigest()[:16] if given else PACKAGE
        lock = open(cache / "lock", "w")
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    folder = cache / f"v{LAYOUT}-{tag}"
    with lock:  # closing it unlocks
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        for stale in cache.glob("new-*"):  # of one that was killed
            shutil.rmtree(stale)
        with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as temporary:
            build(given or download(temporary), folder)
    return folder


def module_groups(folder):
    """{group: names} of a prepared folder."""
    lines = (folder / "modules.list").read_text().splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}
