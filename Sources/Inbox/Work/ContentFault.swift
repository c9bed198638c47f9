internal import Migration
internal import Platform

/// Errors that lie at the surroundings of a store in its place, and at what was sent where the store is in a bundle.
enum ContentFault {
  /// What kind of files it has, what an interrupted migration left, of which version it is.
  private static let codes = Set(
    [FileErrorKind.isDirectory, .notRegularFile, .danglingLink, .notDownloaded, .journalUnreadable, .placeTaken].map(
      \.rawValue) + [MigrationError.Kind.newerModel, .backwards].map(\.rawValue))

  /// Whether the error of a code is one of them.
  static func has(_ code: String) -> Bool { codes.contains(code) }
}
