#!/usr/bin/busybox sh
# The guest's first and only process. Kernel messages go to ttyS0; ttyS1 carries the conversation with the test:
# the script's output between @@begin and @@end, and @@step lines that wait for the host's answer.
export PATH=/usr/sbin:/usr/bin LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu HOME=/
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mkdir -p /dev/shm /mnt
busybox mount -t tmpfs shm /dev/shm
while read -r module; do
    busybox insmod "/modules/$module.ko" || echo "cannot load $module" >/dev/ttyS0
done </modules/order
exec <>/dev/ttyS1 >&0 2>&1
busybox stty raw -echo
echo "@@begin"
busybox sh -eu /script
echo "@@end $?"
# The host answers when it has read everything; without this the last bytes could be lost in the serial port.
read -r answer
busybox poweroff -f
