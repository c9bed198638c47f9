/// Runs `body` and wraps its errors, as in `try wrapping(KitError.init) { () throws(FileError) in try file.close() }`.
@inlinable
package func wrapping<Value: ~Copyable, Inner: Error, Outer: Error>(
  _ wrap: (Inner) -> Outer, _ body: () throws(Inner) -> Value
) throws(Outer) -> Value {
  do throws(Inner) { return try body() } catch { throw wrap(error) }
}
