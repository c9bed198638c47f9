import SQLiteFormat

#if canImport(SwiftData)
  public import SwiftData

  @available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, *)
  extension ModelContainer {
    /// Prepares a store in any state and creates a container for it.
    ///
    /// Never compiled by the project's tests, which run without a Mac.
    ///
    /// - Parameters:
    ///   - migrationPlan: the app's plan; the store is of its last version already.
    /// - Returns: the container, and the preparation of the store.
    /// - Throws: `StoreError`, `CancellationError`, or an error of SwiftData's.
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
