#if canImport(CoreData)
  public import CoreData

  extension NSPersistentContainer {
    /// Prepares the container's store in any state and loads it with the container's other stores.
    ///
    /// Never compiled by the project's tests, which run without a Mac.
    ///
    /// - Parameters:
    ///   - store: the store; the first of the container's descriptions gets its URL.
    /// - Returns: the preparation of the store.
    /// - Throws: `StoreError`, `CancellationError`, or the first error of Core Data's.
    @discardableResult public func loadPersistentStores(
      recovering store: RecoverableStore, progress: @escaping StoreProgress.Handler = { _ in }
    ) async throws -> RecoverableStore.Opening {
      let opening = try await store.open(progress: progress)
      if let description = persistentStoreDescriptions.first {
        description.url = opening.url
        description.shouldAddStoreAsynchronously = false
      } else {
        persistentStoreDescriptions = [NSPersistentStoreDescription(url: opening.url)]
      }
      var failure: (any Error)?
      // All stores are then loaded when this returns.
      for description in persistentStoreDescriptions { description.shouldAddStoreAsynchronously = false }
      loadPersistentStores { _, error in failure = failure ?? error }
      if let failure { throw failure }
      return opening
    }
  }
#endif

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
