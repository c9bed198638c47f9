public import SystemPackage

/// A store that was generated: where it is and what is in it.
public struct GeneratedStore: Sendable, Hashable {
  /// The store's main file.
  public let path: FilePath

  /// The records of each entity that has any, by name; those of sub-entities are counted with their own.
  public let records: [String: Int]

  /// The number of files beside the store that hold large values.
  public let externalFiles: Int

  /// What the model asks for and the records do not keep.
  public let notes: [GenerationNote]

  /// The number of all records.
  public var recordCount: Int { records.values.reduce(0, +) }
}
