public import Foundation
public import ManagedObjectModel
package import StoreCoordination
public import SystemPackage

/// What an app expects of its store: the versions of a managed object model, or the schema of a plain SQLite store.
public struct StoreModel: Sendable {
  /// A version of a managed object model.
  public struct Version: Sendable, Hashable {
    /// What it is called.
    public let name: String

    /// The checksum over the hashes of its entities, as Core Data computes it.
    public let checksum: String

    /// Whether it is the one that the app opens its store with.
    public let isCurrent: Bool
  }

  /// The same, for the modules below.
  package let model: AppModel

  /// A model that was loaded.
  init(_ model: AppModel) { self.model = model }

  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd`, `.mom`, or a `.sql` schema file.
  ///
  /// - Parameters:
  ///   - url: the file or folder.
  ///   - order: the names of all versions, oldest first; nil for their natural order with the current one last.
  public init(contentsOf url: URL, order: [String]? = nil) throws(StoreError) {
    try self.init(contentsOf: FilePath(file: url), order: order)
  }

  /// The same, by a path.
  public init(contentsOf path: FilePath, order: [String]? = nil) throws(StoreError) {
    model = try told { try AppModel.load(path, order: order) }
  }

  /// The model that a store, a backup or a support bundle carries; nil where it carries none.
  public init?(carriedBy url: URL) throws(StoreError) {
    let bundle = try told { try ModelCarrier(FilePath(file: url))?.load() }
    guard let bundle else { return nil }
    model = .coreData(bundle)
  }

  /// The versions of a model that was put together by other means, such as the product `SwiftModelSources`.
  public init(_ bundle: ModelBundle) { model = .coreData(bundle) }

  /// The versions, oldest first as far as that is known; empty for a schema file.
  public var versions: [Version] {
    guard case .coreData(let bundle) = model else { return [] }
    return bundle.versions.map { Version(name: $0.name, checksum: $0.checksum, isCurrent: $0.isCurrent) }
  }

  /// The name of the version that the app opens its store with, or that of the schema file.
  public var currentVersion: String { model.currentVersionName }
}

extension SalvageModel {
  /// What a salvage has to know of an app's model.
  init(_ model: AppModel) {
    switch model {
    case .coreData(let bundle): self = .coreData(bundle)
    case .sqlite(let script, _): self = .sqlite(script)
    }
  }
}
