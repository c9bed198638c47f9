/// What a worker process may use.
package struct WorkLimits: Sendable, Hashable, Codable {
  /// The most bytes of its address space.
  package var memory: UInt64

  /// The most seconds of processor time.
  package var processorSeconds: UInt64

  /// The most bytes of a file that it writes.
  package var fileBytes: UInt64

  /// The most files that it has open.
  package var openFiles: UInt64

  /// The most seconds in all, after which it is killed.
  package var seconds: Int

  /// Limits.
  package init(
    memory: UInt64 = 1 << 30, processorSeconds: UInt64 = 900, fileBytes: UInt64 = 16 << 30, openFiles: UInt64 = 256,
    seconds: Int = 1800
  ) {
    self.memory = memory
    self.processorSeconds = processorSeconds
    self.fileBytes = fileBytes
    self.openFiles = openFiles
    self.seconds = seconds
  }
}
