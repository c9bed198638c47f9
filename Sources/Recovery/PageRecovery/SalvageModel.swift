public import ManagedObjectModel
public import PersistentStore

/// What a caller knows of a store that is to be salvaged.
public enum SalvageModel: Sendable {
  /// The versions of the app's model; the one that the store was written with is found out.
  case coreData(ModelBundle)

  /// The schema of a plain SQLite store.
  case sqlite(SchemaScript)
}
