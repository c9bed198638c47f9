#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Makes a symbolic link; false where the system refuses.
func symbolicLink(at path: String, to target: String) -> Bool { unsafe symlink(target, path) == 0 }

/// Makes a named pipe; false where the system refuses.
func namedPipe(at path: String) -> Bool { unsafe mkfifo(path, 0o600) == 0 }

/// Changes a file's permissions; false where the system refuses.
func changeMode(of path: String, to mode: mode_t) -> Bool { unsafe chmod(path, mode) == 0 }
