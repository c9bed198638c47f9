public import StoreFiles
public import SystemPackage

/// A failure to read a database at all; damage that was met on the way is a ``Finding`` instead.
public struct FormatError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// No page size can be told from the file, its log or its journal.
    case notADatabase = "not-a-database"

    /// The caller's progress function asked to stop.
    case cancelled = "cancelled"

    /// The bytes could not be read; ``FormatError/fileError`` says why.
    case reading = "read-failed"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done.
  public var operation: String

  /// The file it was being done to, where it is known.
  public var path: FilePath?

  /// What went wrong.
  public var detail: String

  /// What the reader can do next.
  public var hint: String

  /// The file system's own error, where reading failed.
  public var fileError: FileError?

  /// The file system's code where reading failed, else the kind's.
  public var code: String { fileError?.code ?? kind.rawValue }

  /// Whether the file system is at fault and not the database.
  public var isEnvironmental: Bool { fileError?.isEnvironmental ?? false }

  /// An error that wraps a failed read.
  public init(_ error: FileError) {
    kind = .reading
    operation = error.operation
    path = error.path
    detail = error.detail
    hint = error.hint
    fileError = error
  }

  init(_ kind: Kind, operation: String, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = nil
    self.detail = detail
    self.hint = hint
    self.fileError = nil
  }

  static func cancelled(_ operation: String) -> FormatError {
    FormatError(
      .cancelled, operation: operation, detail: "it was cancelled", hint: "Run it again when there is time.")
  }
}
