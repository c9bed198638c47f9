#if canImport(CoreData)
  public import CoreData

  extension NSPersistentContainer {
    /// Gets the container's store ready, whatever state it is in, and loads it with the container's other stores.
    ///
    /// Never compiled: no Mac takes part in the project's tests.
    ///
    /// - Parameters:
    ///   - store: the store; the first of the container's descriptions is given its URL.
    ///   - progress: reports how far it is.
    /// - Returns: how the store came to be ready.
    /// - Throws: `StoreError`, `CancellationError`, or the first error of Core Data's.
    @discardableResult
    public func loadPersistentStores(
      recovering store: RecoverableStore, progress: @escaping StoreProgress.Handler = { _ in }
    ) async throws -> RecoverableStore.Opening {
      let opening = try await store.open(progress: progress)
      if let description = persistentStoreDescriptions.first {
        description.url = opening.url
        // Its version is the app's own already.
        description.shouldAddStoreAsynchronously = false
      } else {
        persistentStoreDescriptions = [NSPersistentStoreDescription(url: opening.url)]
      }
      var failure: (any Error)?
      // Without stores that are added asynchronously all are loaded when this returns.
      for description in persistentStoreDescriptions { description.shouldAddStoreAsynchronously = false }
      loadPersistentStores { _, error in failure = failure ?? error }
      if let failure { throw failure }
      return opening
    }
  }
#endif
