#!/usr/bin/env bash
# Two hosts of two ranks each, as network namespaces with a slow link between them: collectives over
# MPI give what threads get, and what goes over the link is what one rank of each host must tell one
# of the other, with at most a tenth for TCP, MPI and what ranks agree on.
#
#   two_hosts.sh MPIEXEC MPI_TEST
set -eu
mpiexec=$1 program=$2
work=$(mktemp -d)
a=velo-a-$$ b=velo-b-$$
clean() {
  rm -rf "$work"
  for host in $a $b; do ip netns del $host 2>/dev/null || true; done
}
trap clean EXIT
if ! { ip netns add $a && ip netns add $b &&
  ip -n $a link add link0 type veth peer name link0 netns $b; } 2>"$work/why"; then
  echo "not tested: two hosts: $(cat "$work/why")"
  exit 77
fi
for host in $a $b; do
  ip -n $host addr add 10.99.7.$([ $host = $a ] && echo 1 || echo 2)/24 dev link0
  ip -n $host link set lo up
  ip -n $host link set link0 up
  ip netns exec $host tc qdisc add dev link0 root tbf rate 2gbit burst 1mb latency 50ms
done

# What mpirun starts its other half with, instead of ssh.
cat >"$work/agent" <<END
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname velo-b; \$*"
END
chmod +x "$work/agent"
run() { # run <rounds>
  ip netns exec $a unshare --uts sh -c \
    "hostname velo-a; exec timeout 120 $mpiexec --mca plm_rsh_agent $work/agent --mca pml ob1 \
    --mca btl tcp,self --mca btl_tcp_if_include 10.99.7.0/24 --mca oob_tcp_if_include 10.99.7.0/24 \
      --host 10.99.7.1:2,10.99.7.2:2 -n 4 \
    -x VELO_TEST_ROUNDS=$1 $program --warn NoTests '[two_hosts]'" >"$work/log" 2>&1 || {
      cat "$work/log"
      exit 1
    }
}
bytes() { ip netns exec $a cat "/sys/class/net/link0/statistics/$1_bytes"; }

# Of two runs the longer one has ten rounds more; the rest, which is MPI's and the program's, they
# share.
measure() { # measure <rounds>: sent and got, bytes to the other host, and from it
  local tx rx
  tx=$(bytes tx) rx=$(bytes rx)
  run "$1"
  sent=$(($(bytes tx) - tx)) got=$(($(bytes rx) - rx))
}
measure 1
short_tx=$sent short_rx=$got
measure 11
long_tx=$sent long_rx=$got
mib=$((10 * 1048576))
status=0
check() { # check <way> <bytes> <least MiB of a round>
  echo "$1: $2 bytes in 10 rounds, at least $(($3 * mib)) ($((100 * $2 / ($3 * mib))) %)"
  [ "$2" -ge $(($3 * mib)) ] && [ "$2" -le $(($3 * mib * 11 / 10)) ] || status=1
}
# reduce_scatter of 4 MiB, 2 each way; all_reduce of 4 MiB, 4 each way; all_gather of 1 MiB a rank,
# 2 each way; broadcast of 4 MiB from the first host; dispatch and combine of 1 MiB a rank, which
# two ranks of the other host get, 2 each way and 2 back.
check "to the second host" $((long_tx - short_tx)) 16
check "to the first host" $((long_rx - short_rx)) 12
exit $status
