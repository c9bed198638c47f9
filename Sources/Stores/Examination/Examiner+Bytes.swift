package import SQLiteFormat
package import StoreFiles

extension Examiner {
  /// Examines bytes that the caller keeps still: those of a store as of one moment.
  ///
  /// Takes no lock and looks at no file. Throws what reading throws, and never over what the store holds.
  ///
  /// - Parameters:
  ///   - main: the main file's bytes.
  ///   - log: the log's, as far as they count; nil without a log.
  ///   - journal: those of a journal that is hot or may be; nil without.
  ///   - files: the set they are of.
  ///   - members: the parts of it that are there.
  ///   - visitor: what looks at the pages of b-trees during a full look; it sees each page of a sound store once.
  package func examine(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, of files: StoreFileSet,
    members: [StoreFileSet.Member], options: Options = Options(), visitor: (any PageVisitor)? = nil
  ) throws -> Examination {
    var examination = Examination(
      files: files, verdict: .missing, reason: .missing, kind: .unknown, entities: [],
      health: Health(depth: options.depth, files: members))
    let bytes = StoreBytes(main: main, log: log, journal: journal) { _ in true }
    do {
      try read(bytes, into: &examination, model: nil, options: options, visitor: visitor)
    } catch let error as FormatError {
      if error.kind == .cancelled { throw error }
      if let fileError = error.fileError { throw fileError }
      examination.condemn(.unreadable(error))
    }
    return examination
  }
}
