"""slurm.py - a Slurm of this machine alone, with its own munge; it ends with the tests."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

from support import ENVIRONMENT, Skip

NODES = ("node1", "node2")              # each with a host name of its own
CONFIGURATION = """\
ClusterName=tenon
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=10000
"""
daemons = []
state = {}


def begin(*words, **more):
    daemons.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True, **more))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def configure(folder):
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(host=host, port=free_port(), folder=folder)
    for node in NODES:
        text += f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={free_port()} CPUs=8 State=UNKNOWN\n"
        (folder / node).mkdir()
    text += f"PartitionName=all Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP\n"
    (folder / "slurm.conf").write_text(text)
    (folder / "state").mkdir()


def start(folder):
    folder.mkdir(mode=0o755)
    configure(folder)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    begin(shutil.which("munged", path="/usr/sbin"), "--foreground", "--force", f"--key-file={key}",
          f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log",
          f"--seed-file={folder}/munge.seed")
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    daemon = {**ENVIRONMENT, **environment}
    begin("/usr/sbin/slurmctld", "-D", env=daemon)
    for node in NODES:
        begin("unshare", "--uts", "sh", "-c", f"hostname {node} && exec /usr/sbin/slurmd -D -N {node}", env=daemon)
    return environment


def is_idle(environment):
    done = subprocess.run(["sinfo", "-h", "-o", "%T"], env={**ENVIRONMENT, **environment}, capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.split() == ["idle"]


def why(folder):
    """The last line of a log that tells a failure."""
    lines = [line for log in sorted(folder.glob("*.log")) for line in log.read_text(errors="replace").splitlines()
             if "error" in line.lower() or "fatal" in line.lower()]
    return lines[-1] if lines else "its nodes do not come up"


def started(room):
    """What the environment of Slurm's commands needs."""
    if not state:
        if os.getuid() != 0:
            state["problem"] = "its daemons need root"
            raise Skip(state["problem"])
        folder = pathlib.Path(room) / "slurm"
        state["environment"] = start(folder)
        until = time.monotonic() + 40
        while not is_idle(state["environment"]) and time.monotonic() < until:
            time.sleep(0.2)
        if not is_idle(state["environment"]):
            state["problem"] = why(folder)
    if "problem" in state:
        raise Skip(f"Slurm does not start: {state['problem']}")
    return state["environment"]


def running(environment):
    """The tasks that run now, as scontrol names them."""
    done = subprocess.run(["squeue", "-h", "-t", "running", "-o", "%i"], env={**ENVIRONMENT, **environment},
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


def stop():
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in reversed(daemons):
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
