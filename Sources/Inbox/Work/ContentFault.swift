internal import Migration
internal import Platform

/// Error codes that blame the environment of a store in place, but the content of a bundle.
enum ContentFault {
  /// File kinds, migration leftovers, model versions.
  private static let codes = Set(
    [FileErrorKind.isDirectory, .notRegularFile, .danglingLink, .notDownloaded, .journalUnreadable, .placeTaken].map(
      \.rawValue) + [MigrationError.Kind.newerModel, .backwards].map(\.rawValue))

  static func has(_ code: String) -> Bool { codes.contains(code) }
}
