/// What an export is doing.
package enum ExportPhase: String, Sendable, Hashable, CaseIterable {
  /// Copying a store that may be in use into a private folder.
  case copying

  case examining

  /// Finding out what can be recovered of the store.
  case analysing

  case scrubbing

  /// Looking for values in what is to leave the machine.
  case checking

  case packing

  /// The phase in a word or two, for a progress line.
  package var words: String {
    switch self {
    case .copying: "Copying"
    case .examining: "Examining"
    case .analysing: "Analysing"
    case .scrubbing: "Scrubbing"
    case .checking: "Checking"
    case .packing: "Packing"
    }
  }
}

/// Called with what is being done, how much of it and how much in all; false ends the export with `cancelled`.
package typealias ExportProgress = @Sendable (_ phase: ExportPhase, _ done: Int64, _ total: Int64) -> Bool
