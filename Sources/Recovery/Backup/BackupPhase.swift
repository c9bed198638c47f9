/// What is being done, as far as progress is told.
package enum BackupPhase: String, Sendable, Hashable {
  /// The pages that changed are looked for.
  case comparing

  case packing

  /// The large values are packed.
  case externalData = "external-data"

  /// What was written is read back.
  case proving

  case unpacking

  /// A restored store is checked.
  case checking
}

/// Called with the phase, the bytes done and the bytes in all; false ends the work.
package typealias BackupProgress = @Sendable (_ phase: BackupPhase, _ done: Int64, _ total: Int64) -> Bool
