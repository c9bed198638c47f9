#pragma once

// What Linux has and Swift's own module of the C library has not: extended attributes, the limits that a process puts
// on itself, and what becomes of memory that is freed.
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifdef __GLIBC__
/// Has blocks of so many bytes and more go back to the system when they are freed, and what lies free above all others from four
/// megabytes on.
static inline void lazaret_give_back_memory(int bytes) {
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
}
#endif

/// Forbids this process, and all that it starts, to get more rights than it has; 0, or an error number.
static inline int lazaret_keep_no_new_privileges(void) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

/// Writes a line to a file of the process's own.
static inline void lazaret_tell_kernel(const char *path, const char *line, int length) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  // Where it is refused the identifiers of users are not known within; nothing else depends on them.
  (void)!write(file, line, (size_t)length);
  close(file);
}

/// Moves this process, which has one thread, into a network and an IPC namespace of its own that lead nowhere; 0, or an
/// error number.
static inline int lazaret_leave_network(void) {
  // CLONE_NEWNET | CLONE_NEWIPC of <linux/sched.h>, which the superuser may do; CLONE_NEWUSER besides for other users.
  if (syscall(SYS_unshare, 0x40000000 | 0x08000000) == 0) return 0;
  unsigned int user = geteuid(), group = getegid();
  if (syscall(SYS_unshare, 0x10000000 | 0x40000000 | 0x08000000) != 0) return errno;
  char line[64];
  lazaret_tell_kernel("/proc/self/setgroups", "deny", 4);
  lazaret_tell_kernel("/proc/self/uid_map", line, snprintf(line, sizeof line, "%u %u 1", user, user));
  lazaret_tell_kernel("/proc/self/gid_map", line, snprintf(line, sizeof line, "%u %u 1", group, group));
  return 0;
}

// Landlock (landlock(7), <linux/landlock.h>), whose header and system call numbers older systems lack.

struct lazaret_landlock_ruleset { uint64_t files, network, scopes; };
struct __attribute__((packed)) lazaret_landlock_path { uint64_t allowed; int32_t folder; };

/// The version of Landlock that the kernel has; 0 for none.
static inline int lazaret_landlock_version(void) {
  long version = syscall(444, NULL, 0, 1);
  return version > 0 ? (int)version : 0;
}

/// Begins a set of rules that forbids every use of files, of TCP and of others' abstract sockets as far as a version knows
/// them; a descriptor, or -1.
static inline int lazaret_landlock_begin(int version) {
  // Thirteen rights in version 1, then "refer", "truncate" and "ioctl on devices" in 2, 3 and 5.
  uint64_t files = version >= 5 ? 0xffff : version >= 3 ? 0x7fff : version >= 2 ? 0x3fff : 0x1fff;
  struct lazaret_landlock_ruleset rules = {files, version >= 4 ? 3 : 0, version >= 6 ? 3 : 0};
  size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  return (int)syscall(444, &rules, size, 0);
}

/// Allows what is below a path to be read, and written too where told; 0, or an error number.
static inline int lazaret_landlock_allow(int rules, int version, const char *path, int writes) {
  // O_PATH, which the C library hides without its own extensions.
  int folder = open(path, 010000000 | O_CLOEXEC);
  if (folder < 0) return errno;
  // Reading files and listing folders, or everything but running programs and making links, devices, sockets and pipes.
  uint64_t all = version >= 3 ? 0x7fff : version >= 2 ? 0x3fff : 0x1fff;
  uint64_t file = version >= 3 ? 0x4006 : 0x0006;
  uint64_t reading = 0x000c, writing = all & ~(uint64_t)(0x0001 | 0x0040 | 0x0200 | 0x0400 | 0x0800 | 0x1000);
  struct lazaret_landlock_path rule = {writes ? writing : reading, folder};
  int failure = syscall(445, rules, 1, &rule, 0) == 0 ? 0 : errno;
  if (failure == EINVAL) {
    // A single file has no rights of folders.
    rule.allowed &= file;
    failure = syscall(445, rules, 1, &rule, 0) == 0 ? 0 : errno;
  }
  close(folder);
  return failure;
}

/// Puts the rules on the calling thread, and on all that it starts; 0, or an error number. The descriptor is closed.
static inline int lazaret_landlock_end(int rules) {
  int failure = syscall(446, rules, 0) == 0 ? 0 : errno;
  close(rules);
  return failure;
}

#if defined(__x86_64__)
#define LAZARET_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define LAZARET_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

/// Refuses this process, in all its threads, sockets, programs and processes, tracing, mounts and the kernel's other ways
/// out; 0, or an error number.
static inline int lazaret_refuse_calls(void) {
#ifdef LAZARET_AUDIT_ARCH
#define LAZARET_REFUSE(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LAZARET_AUDIT_ARCH, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#if defined(__x86_64__)
      // The 32-bit pointers of x32 have numbers of their own.
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      LAZARET_REFUSE(SYS_fork), LAZARET_REFUSE(SYS_vfork),
#endif
      LAZARET_REFUSE(SYS_socket), LAZARET_REFUSE(SYS_socketpair), LAZARET_REFUSE(SYS_connect), LAZARET_REFUSE(SYS_bind),
      LAZARET_REFUSE(SYS_execve), LAZARET_REFUSE(SYS_execveat), LAZARET_REFUSE(SYS_ptrace),
      LAZARET_REFUSE(SYS_process_vm_readv), LAZARET_REFUSE(SYS_process_vm_writev), LAZARET_REFUSE(SYS_mount),
      LAZARET_REFUSE(SYS_umount2), LAZARET_REFUSE(SYS_pivot_root), LAZARET_REFUSE(SYS_chroot), LAZARET_REFUSE(SYS_unshare),
      LAZARET_REFUSE(SYS_setns), LAZARET_REFUSE(SYS_keyctl), LAZARET_REFUSE(SYS_add_key), LAZARET_REFUSE(SYS_request_key),
      LAZARET_REFUSE(SYS_bpf), LAZARET_REFUSE(SYS_perf_event_open), LAZARET_REFUSE(SYS_userfaultfd),
      LAZARET_REFUSE(SYS_init_module), LAZARET_REFUSE(SYS_finit_module), LAZARET_REFUSE(SYS_kexec_load),
      LAZARET_REFUSE(SYS_open_by_handle_at), LAZARET_REFUSE(SYS_mknodat), LAZARET_REFUSE(425 /* io_uring_setup */),
      // A thread shares everything with its process; the C library falls back to clone, whose flags can be looked at.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435 /* clone3 */, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      // CLONE_THREAD of <linux/sched.h>.
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
#undef LAZARET_REFUSE
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  // SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_TSYNC: all threads, also one that a library has begun.
  return syscall(SYS_seccomp, 1, 1, &program) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}
#endif
