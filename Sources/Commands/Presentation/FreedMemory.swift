#if canImport(Glibc)
  import CLinux
#endif

enum FreedMemory {
  /// Returns large blocks to the system when freed.
  ///
  /// Once it has freed a block of up to 32 MB, the GNU C library keeps such blocks: on a store of 1 GB that costs some
  /// 50 MB.
  ///
  /// - Parameter bytes: the smallest block size. Backups use 1 MiB blocks, whose pages would be cleared each time.
  static func goesBack(from bytes: Int32 = 4 << 20) {
    #if canImport(Glibc)
      lazaret_give_back_memory(bytes)
    #endif
  }
}
