internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// The errors of an export, which are those of support bundles.
package enum SupportBundleErrors {
  static let operation = "export the store"

  /// A request that makes no sense.
  static func request(_ operation: String, _ path: FilePath?, _ detail: String, _ hint: String) -> SupportBundleError {
    SupportBundleError(.request, operation: operation, path: path, detail: detail, hint: hint)
  }

  /// A level that the store has nothing for.
  static func store(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.store, operation: operation, path: path, detail: detail)
  }

  /// Values, names or sums that were to stay are in what was to leave.
  ///
  /// - Parameter kept: the columns whose values were kept.
  static func notScrubbed(
    _ path: FilePath, count: Int, in name: String, at offset: Int64, keeping kept: Set<String>
  ) -> SupportBundleError {
    SupportBundleError(
      .notScrubbed, operation: operation, path: path,
      detail:
        "\(count) values of records, or names or sums of files, were found in what was to be written, the first in "
        + "\(printable(name)) at byte \(offset)" + keptDetail(kept), hint: keptHint(kept))
  }

  /// The likely cause where columns were kept, to follow what was found; empty where none was.
  package static func keptDetail(_ kept: Set<String>) -> String {
    kept.isEmpty
      ? "" : "; likely because of --keep \(words(kept)): values that are kept are values of other columns too"
  }

  /// What to do where columns were kept; nil where none was.
  package static func keptHint(_ kept: Set<String>) -> String? {
    guard !kept.isEmpty else { return nil }
    return
      "Nothing was written. Keep the other columns with these values too, whatever the case of their letters, or do "
      + "not keep \(words(kept)). If it fails without --keep, please report it with the store's schema."
  }

  private static func words(_ kept: Set<String>) -> String {
    kept.sorted().map { printable($0) }.joined(separator: ", ")
  }
}
