import ArgumentParser
import Foundation
import InboxObjectStorage
import ObjectStorage
import StoreCoordination

/// Where the bundles of an inbox are, if not in its home.
struct BundleOptions: ParsableArguments {
  /// The variable of the environment that has the address.
  static let variable = "LAZARET_BUNDLES"

  // A text, and not an address, since what is wrong with it may be a secret that must not be shown.
  @Option(
    help: ArgumentHelp(
      "Object storage with the inbox's bundles, for any number of machines: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws. If not given, what LAZARET_BUNDLES says, else the bundles are in the home.",
      valueName: "address"))
  var bundles: String?

  func validate() throws {
    do throws(S3Error) {
      if let bundles { _ = try S3Address(bundles) }
    } catch {
      throw ValidationError("--bundles: \(error.detail). \(error.hint)")
    }
  }

  /// The address; nil where the bundles are in the home.
  ///
  /// - Throws: `s3-address` where that of the environment is none.
  func address() throws(S3Error) -> S3Address? {
    if let bundles { return try S3Address(bundles) }
    guard let text = ProcessInfo.processInfo.environment[Self.variable], !text.isEmpty else { return nil }
    return try S3Address(text)
  }

  /// The storage of an address, with its copies in a home.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  static func storage(
    _ address: S3Address, home: FilePath, copyBytes: Int64 = 0
  ) throws(S3Error) -> ObjectBundleStorage {
    let environment = S3Environment { ProcessInfo.processInfo.environment[$0] }
    let client = try environment.client(for: address, patience: .short)
    return ObjectBundleStorage(address, client, home: home, copyBytes: copyBytes)
  }
}
