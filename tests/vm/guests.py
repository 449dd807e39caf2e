# SPDX-License-Identifier: Apache-2.0
#
# The guests of one call: what is in their first file system, and QEMU for each.
import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import cpio
import kernel
from host import SYSTEM_PATH, Failure, Missing, die_with_parent, program, static_busybox

HERE = Path(__file__).resolve().parent
STDOUT, STDERR, CONTROL = PORTS = (1, 2, 3)
KERNEL_ARGUMENTS = """quiet loglevel=4 panic=-1 nokaslr mitigations=off nopti no5lvl audit=0
    selinux=0 apparmor=0 nowatchdog tsc=reliable no_timer_check random.trust_cpu=on
    cryptomgr.notests rcupdate.rcu_expedited=1 8250.nr_uarts=1 console=ttyS0""".split()


def address(node, device):
    return f"10.77.{device}.{node + 1}"


def qemu():
    name = os.environ.get("CARILLON_VM_QEMU", "qemu-system-x86_64")
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} is missing (Debian: qemu-system-x86)")
    return path


def check_host():
    """All that the guests need of the host, but for the kernel."""
    if os.uname().machine != "x86_64":
        raise Missing("the guests are x86_64, and so must be the host")
    qemu()
    for name in ("ip", "rdma"):
        program(name, "iproute2")
    if not Path("/etc/libibverbs.d").is_dir():
        raise Missing("/etc/libibverbs.d is missing (Debian: ibverbs-providers)")
    static_busybox()


class File:
    """A file without a name: nothing of it can be left behind. QEMU finds it by its number."""

    def __init__(self, name, data=b""):
        self.fd = os.memfd_create(name)
        with open(self.fd, "wb", closefd=False) as file:
            file.write(data)
        self.path = f"/dev/fd/{self.fd}"

    def text(self):
        size = os.fstat(self.fd).st_size
        return os.pread(self.fd, size, 0).decode("utf-8", "replace").replace("\r", "")


class Guest:
    """One guest: its QEMU, and the three ports to it."""

    def __init__(self, number, options, command, folder):
        self.number, self.options, self.command, self.folder = number, options, command, folder
        self.process = None
        self.ports = {}
        self.ready, self.status, self.problem = False, None, None
        self.console, self.log = File("console"), File("qemu")

    def environment(self):
        nodes = range(self.options.nodes)
        variables = {
            "PATH": os.environ.get("PATH", SYSTEM_PATH),
            "HOME": os.environ.get("HOME", "/"),
            "CARILLON_VM_NODE": str(self.number),
            "CARILLON_VM_NODES": str(len(nodes)),
            "CARILLON_VM_ADDRESS": address(self.number, 0),
            "CARILLON_VM_ADDRESSES": ",".join(address(node, 0) for node in nodes),
        }
        for item in self.options.env:
            name, given, value = item.partition("=")
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise Failure(f"--env: '{name}' is no name of a variable")
            if given or name in os.environ:
                variables[name] = value if given else os.environ[name]
        return variables

    def settings(self):
        """What guest/init and guest/network read."""
        groups = kernel.module_groups(self.folder)
        rdma = list(groups["RDMA"])
        if self.options.devs > 1:
            rdma += groups["BRIDGE"]
        elif self.options.nodes == 1:
            rdma += groups["ALONE"]
        return {
            "NODE": self.number,
            "DEVS": self.options.devs,
            "MTU": self.options.mtu,
            "ADDRESSES": " ".join(address(self.number, i) for i in range(self.options.devs)),
            "MODULES_BOOT": " ".join(groups["BOOT"]),
            "MODULES_RDMA": " ".join(rdma),
        }

    def first_files(self):
        hosts = ["127.0.0.1 localhost"]
        hosts += [f"{address(node, 0)} node{node}" for node in range(self.options.nodes)]
        script = ["ulimit -l unlimited", "ulimit -c 0"]
        script += [f"export {k}={shlex.quote(v)}" for k, v in self.environment().items()]
        script += [f"cd {shlex.quote(os.getcwd())} || exit 125",
                   "exec " + shlex.join(self.command)]
        settings = [f"{k}={shlex.quote(str(v))}" for k, v in self.settings().items()]

        def lines(name, text):
            return cpio.file(name, ("\n".join(text) + "\n").encode())

        entries = [cpio.folder(name) for name in ("bin", "proc", "sys", "dev", "writable")]
        entries += [cpio.file("bin/busybox", static_busybox(), 0o755),
                    cpio.link("bin/sh", "busybox"),
                    cpio.file("init", (HERE / "guest/init").read_bytes(), 0o755),
                    cpio.file("network", (HERE / "guest/network").read_bytes()),
                    lines("command", script), lines("hosts", hosts), lines("settings", settings)]
        entries += [cpio.file(f"writable/rw{i}", name.encode())
                    for i, name in enumerate(self.options.rw)]
        return (self.folder / "modules.cpio").read_bytes() + cpio.archive(entries)

    def machine(self, first_files):
        """Where a processor has erms, kernel and C library copy by an instruction that the emulation
        does byte by byte; smap makes each copy to and from programs two turns of the emulation."""
        options = self.options
        return [
            qemu(), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-name", f"carillon-vm-{self.number}", "-machine", "q35",
            "-accel", "tcg,thread=multi", "-cpu", "max,-erms,-smap",
            "-smp", str(options.cpus), *self.memory(),
            "-kernel", str(self.folder / "kernel"), "-initrd", first_files.path,
            "-append", " ".join(KERNEL_ARGUMENTS), "-serial", f"file:{self.console.path}",
            "-device", "virtio-serial-pci,id=serial,max_ports=4",
        ]

    def memory(self):
        """In so many NUMA domains, each with as many cores, but for the last."""
        count = self.options.domains
        if count == 1:
            return ["-m", str(self.options.memory)]
        each, cores = self.options.memory // count, self.options.cpus // count
        arguments = ["-m", str(each * count)]
        for i in range(count):
            last = self.options.cpus - 1 if i == count - 1 else (i + 1) * cores - 1
            arguments += ["-object", f"memory-backend-ram,id=domain{i},size={each}M",
                          "-numa", f"node,nodeid={i},cpus={i * cores}-{last},memdev=domain{i}"]
        return arguments

    def shared_folders(self):
        arguments = []
        for tag, path, access in [("root", "/", ",readonly=on"),
                                  *((f"rw{i}", path, "")
                                    for i, path in enumerate(self.options.rw))]:
            path = path.replace(",", ",,")
            arguments += [
                "-fsdev",
                f"local,id={tag},path={path},security_model=none,multidevs=remap{access}",
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        return arguments

    def network(self, wires):
        """One wire is plugged in; several meet in a hub."""
        arguments, plug = [], "wire0"
        if len(wires) > 1:
            plug = "plug"
            arguments += ["-netdev", "hubport,id=plug,hubid=0"]
        for i, wire in enumerate(wires):
            arguments += ["-netdev", f"socket,id=wire{i},fd={wire.fileno()}"]
            if len(wires) > 1:
                arguments += ["-netdev", f"hubport,id=hub{i},hubid=0,netdev=wire{i}"]
        if wires:
            arguments += ["-device", f"virtio-net-pci,netdev={plug},romfile=,"
                          f"mac=52:54:00:77:00:{self.number + 1:02x},host_mtu={self.options.mtu}"]
        return arguments

    def start(self, wires):
        """`wires` are this guest's from now on."""
        first_files = File("first-files", self.first_files())
        theirs, arguments = list(wires), self.machine(first_files) + self.shared_folders()
        for port in PORTS:
            self.ports[port], end = socket.socketpair()
            self.ports[port].setblocking(False)
            theirs.append(end)
            arguments += ["-chardev", f"socket,id=port{port},fd={end.fileno()}", "-device",
                          f"virtserialport,bus=serial.0,nr={port},chardev=port{port}"]
        files = [first_files.fd, self.console.fd]
        self.process = subprocess.Popen(
            arguments + self.network(wires), stdin=subprocess.DEVNULL, stdout=self.log.fd,
            stderr=self.log.fd, pass_fds=files + [end.fileno() for end in theirs],
            start_new_session=True, preexec_fn=die_with_parent)
        for end in theirs:
            end.close()
        os.close(first_files.fd)

    def go(self):
        self.ports[CONTROL].send(b"go\n")

    def hear(self, line):
        word, _, rest = line.partition(" ")
        if word == "ready":
            self.ready = True
        elif word == "exit":
            self.status = int(rest)
        elif word == "fail":
            self.problem = rest

    def last_lines(self, count=25):
        """Of what QEMU and the kernel said."""
        return "\n".join((self.log.text() + self.console.text()).splitlines()[-count:])

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()

    def wait(self):
        if self.process:
            self.process.wait()
