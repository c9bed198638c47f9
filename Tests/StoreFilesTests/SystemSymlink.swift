import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// `symlink(2)`, under a name of its own.
func systemSymlink(_ target: UnsafePointer<CChar>, _ path: UnsafePointer<CChar>) -> CInt {
  unsafe symlink(target, path)
}

/// `mkfifo(2)`, under a name of its own.
func makeNamedPipe(_ path: FilePath) -> CInt {
  unsafe path.withPlatformString { unsafe mkfifo($0, 0o600) }
}
