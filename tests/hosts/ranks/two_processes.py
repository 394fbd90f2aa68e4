"""Two ranks as processes of one script, and a group of velo's between them. A test calls
on_two_ranks, whose processes run the script again with a folder and their rank behind its
arguments."""
import ctypes
import os
import subprocess
import sys
import tempfile

RANKS = 2


def on_two_ranks(script, *arguments):
    """Runs `script *arguments FOLDER RANK` for each rank; fails unless both end well."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen([sys.executable, script, *arguments, folder, str(rank)])
            for rank in range(RANKS)
        ]
        codes = [each.wait(timeout=600) for each in ranks]
    assert codes == [0] * RANKS, f"the ranks ended with {codes}"


def make_group(library, context, folder, rank):
    """The rank's group, in shared memory, named by the folder that the ranks share."""
    import velo.ctypes as abi
    name = "two-ranks-" + os.path.basename(folder)
    desc = abi.velo_group_desc(transport=abi.VELO_TRANSPORT_SHM, name=name.encode(), rank=rank,
                               size=RANKS, timeout_ns=60 * 10**9)
    group = abi.velo_group()
    status = library.velo_group_create(context, ctypes.byref(desc), ctypes.byref(group))
    assert status == 0, f"no group: status {status}"
    return group
