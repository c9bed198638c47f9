#if canImport(Glibc)
  import CLinux
#endif

/// What becomes of memory that this process no longer uses.
enum FreedMemory {
  /// Has large blocks go back to the system as soon as they are freed.
  ///
  /// The GNU C library otherwise keeps blocks of up to 32 MB, once one of that size was freed, for blocks to come: work on a
  /// store of a gigabyte, which ends one large table after another, then takes some 50 MB more than it uses at any time.
  static func goesBack() {
    #if canImport(Glibc)
      lazaret_give_back_memory()
    #endif
  }
}
