#if canImport(Glibc)
  import CLinux
#endif

/// What becomes of memory that this process no longer uses.
enum FreedMemory {
  /// Has large blocks go back to the system as soon as they are freed.
  ///
  /// The GNU C library otherwise keeps blocks of up to 32 MB, once one of that size was freed, for blocks to come: work on a
  /// store of a gigabyte, which ends one large table after another, then takes some 50 MB more than it uses at any time.
  ///
  /// - Parameter bytes: from how many bytes on. A backup goes through blocks of a megabyte, and would have each page of each of
  ///   them cleared anew.
  static func goesBack(from bytes: Int32 = 4 << 20) {
    #if canImport(Glibc)
      lazaret_give_back_memory(bytes)
    #endif
  }
}
