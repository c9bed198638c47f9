import SQLiteFormat

#if canImport(SwiftData)
  public import SwiftData

  @available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, *)
  extension ModelContainer {
    /// Gets a store ready, whatever state it is in, and makes a container of it.
    ///
    /// Never compiled: no Mac takes part in the project's tests.
    ///
    /// - Parameters:
    ///   - store: the store.
    ///   - schema: the app's schema.
    ///   - migrationPlan: the app's plan; the store is of its last version already.
    ///   - progress: reports how far it is.
    /// - Returns: the container, and how the store came to be ready.
    /// - Throws: `StoreError`, `CancellationError`, or what SwiftData throws.
    public static func recovering(
      _ store: RecoverableStore, for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
      progress: @escaping StoreProgress.Handler = { _ in }
    ) async throws -> (container: ModelContainer, opening: RecoverableStore.Opening) {
      let opening = try await store.open(progress: progress)
      let configuration = ModelConfiguration(schema: schema, url: opening.url)
      let container = try ModelContainer(for: schema, migrationPlan: migrationPlan, configurations: [configuration])
      return (container, opening)
    }
  }
#endif
