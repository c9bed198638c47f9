internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// The errors of an export, which are those of support bundles.
enum SupportBundleErrors {
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
  static func notScrubbed(_ path: FilePath, count: Int, in name: String, at offset: Int64) -> SupportBundleError {
    SupportBundleError(
      .notScrubbed, operation: operation, path: path,
      detail:
        "\(count) values of records, or names or sums of files, were found in what was to be written, the first in "
        + "\(printable(name)) at byte \(offset)")
  }
}
