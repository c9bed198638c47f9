public import StoreFiles

extension StoreScrubber {
  /// What looks for a store's values in other files, where the store itself is not scrubbed; nothing is written.
  ///
  /// - Throws: ``ScrubbingError``.
  public func scanner(
    of store: StoreFileSet, progress: @escaping Progress = { _, _, _ in true }
  ) throws(ScrubbingError) -> ValueScanner {
    try ScrubWork(
      store: store, target: store, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress
    ).scanner()
  }
}
