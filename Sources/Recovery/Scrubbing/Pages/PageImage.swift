/// An image of a page in one of a store's files.
enum PageImage: Hashable, Sendable {
  /// The page in the main file.
  case main(UInt32)

  /// A frame of the log, from 0.
  case log(Int)

  /// A record of the journal, from 0.
  case journal(Int)
}
