# Functions for guest scripts. Scripts run with `sh -eu`: the first command that fails ends them.

# This shell prefers its own, simpler versions of some programs; scripts mean the real ones.
for tool in blkdiscard blockdev fstrim; do
    eval "$tool() { $(which $tool) \"\$@\"; }"
done

# Tells the host that the script got here, and waits until the host has done its part.
step() {
    echo "@@step $1"
    read -r answer
}

# Fails the script with a sentence.
fail() {
    echo "guest: $*"
    exit 1
}

# Waits up to $1 seconds for a command to succeed.
within() {
    seconds=$1
    shift
    while ! "$@"; do
        [ "$seconds" -gt 0 ] || fail "gave up waiting for: $*"
        seconds=$((seconds - 1))
        sleep 1
    done
}

# Hardware queues of a disk.
queues() {
    ls "/sys/block/$1/mq" | wc -l
}

# fio with verification on a device or file; further arguments are added. One line of result per phase.
# `--thread` and `--verify_fatal` keep it small and make the first bad block end it.
fio_verify() {
    fio --thread --verify=crc32c --verify_fatal=1 --do_verify=1 --ioengine=libaio --direct=1 \
        --bs=4k --iodepth=16 --rw=randwrite --randrepeat=1 --output-format=terse "$@" >/tmp/fio.out 2>&1 || {
        cat /tmp/fio.out
        fail "fio $* failed"
    }
}

# Waits for the process $1, which does I/O on the disk $2, and fails if ten seconds pass in which no I/O completes.
watch() {
    still=0
    before=
    while kill -0 "$1" 2>/dev/null; do
        now=$(cat "/sys/block/$2/stat")
        # The first and fifth words count completed reads and writes; others change with time alone.
        now=$(echo "$now" | awk '{ print $1, $5 }')
        if [ "$now" = "$before" ]; then still=$((still + 1)); else still=0; fi
        [ "$still" -lt 10 ] || fail "no I/O completes on $2; in flight: $(cat "/sys/block/$2/inflight")"
        before=$now
        sleep 1
    done
    wait "$1"
}

# The SCSI device of target $1 and LUN $2 behind the adapter with the number $3 (0: the first), as its folder in sysfs.
scsi_device() {
    host=$(ls /sys/class/scsi_host | sort -V | sed -n "$((${3:-0} + 1))p")
    echo "/sys/class/scsi_device/${host#host}:0:$1:$2/device"
}

# Its names under /dev; nothing if it is not there.
disk_of() { ls "$(scsi_device "$@")/block" 2>/dev/null || true; }
sg_of() { ls "$(scsi_device "$@")/scsi_generic" 2>/dev/null || true; }

# Whether it is there, and whether it is not; for `within`.
has_disk() { [ -n "$(disk_of "$@")" ]; }
no_disk() { [ -z "$(disk_of "$@")" ]; }

# Runs libiscsi's tests on one path to a disk, or on two. The host gets at most five lines of what each test prints, its verdict
# and four reasons, since one test alone can print thousands. The status says only that a test failed, which the host judges.
conformance() {
    echo "@conformance $*"
    iscsi-test-cu --dataloss --test=ALL "$@" >/tmp/conformance.out 2>&1 </dev/null || true
    awk '/^Suite: |^  Test: |^FAILED$|^passed$|^Run Summary/ { left = 4; print; next } NF && left-- > 0' \
        /tmp/conformance.out
    echo "@conformance-end"
}
