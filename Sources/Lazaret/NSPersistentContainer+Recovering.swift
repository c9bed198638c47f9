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
    @discardableResult
    public func loadPersistentStores(
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
