import SystemPackage

#if os(Linux)
  import CLinux
#endif

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

/// Gives a file an extended attribute; false where its file system, or the system, has none.
func setAttribute(_ name: String, _ value: [UInt8], of path: FilePath) -> Bool {
  #if os(Linux)
    unsafe path.withPlatformString { file in
      unsafe value.withUnsafeBytes { unsafe setxattr(file, name, $0.baseAddress, $0.count, 0) } == 0
    }
  #else
    false
  #endif
}
